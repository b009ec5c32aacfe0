"""The interface of local engines: token ids in, token ids and log-probabilities out.

In: a `TokenRequest`. Out: a future of a `Generation`. Engines know nothing of chat templates, seats or stores:
`local_model.py` renders messages to ids and asks. Nothing is bound to an event loop: futures are
`concurrent.futures.Future`s.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from collabsim.request import Sampling


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """One draw, in tokens."""

    prompt_ids: tuple[int, ...]
    """The prompt exactly as the model reads it, BOS included where the model has one; never re-tokenised."""
    sampling: Sampling
    """`max_tokens` fits the window (planned before); `stop` strings end the reply and are not part of its text."""
    seed: int
    """Of this request alone; plays no part in greedy sampling."""


@dataclass(frozen=True, slots=True)
class Generation:
    """What an engine sampled."""

    ids: tuple[int, ...]
    """All sampled ids, the end-of-turn token included when it was sampled."""
    logprobs: tuple[float, ...]
    """Log-probability of each id under the distribution it was sampled from (tempered, top-k and top-p applied)."""
    text: str
    """`ids` decoded without special tokens, cut before the first stop string."""
    finish: str
    """`stop` (end token or stop string) or `length`."""


class Engine(Protocol):
    """A running model. Thread-safe; `close` is idempotent and ends its threads and processes."""

    @property
    def max_model_len(self) -> int:
        """Longest prompt plus reply, in tokens."""

    @property
    def revision(self) -> str:
        """Version of the weights that speak now; changes only when weights are replaced."""

    def submit(self, request: TokenRequest) -> Future[Generation]:
        """Queue a request. The future fails with `CallError` when the engine fails; cancelling it drops the request."""

    def close(self) -> None:
        """Stop, fail what is in flight, free memory."""
