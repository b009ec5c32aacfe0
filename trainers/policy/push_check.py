"""A check after each push of weights: the same tokens must be as likely to the engine as to the learner.

In: an engine and a learner. Out: the mean distance of their log-probabilities over a short greedy reply. It detects weights
that did not arrive, arrived in part or under a wrong name, and keys and values of older ones in a prefix cache. It cannot
detect a change smaller than the noise of the dtype: in bfloat16 one step at a small learning rate. Left out on purpose: what
to do about a difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collabsim.errors import CallError
from collabsim.models.engines import Engine, TokenRequest
from collabsim.request import Message, Sampling

from .token_row import TokenRow

if TYPE_CHECKING:
    from collabsim.models import Prompter

    from .learner import Learner

TOLERANCE = {"float32": 1e-3, "float16": 0.1, "bfloat16": 0.25}
"""Nats a token, in the mean. Measured between vLLM and transformers: below 2e-5 in float32, 0.04 in bfloat16."""
TOKENS = 4
SECONDS = 300.0
_QUESTION = "Say in a few words what this is: a canary in a coal mine."


class PushCheck:
    """Asks one fixed prompt, always the same ids, so that a stale prefix cache would answer from it."""

    def __init__(self, prompter: Prompter, engine: Engine, learner: Learner) -> None:
        self._engine = engine
        self._learner = learner
        ids = prompter.render((Message("user", _QUESTION),))
        self._tokens = min(TOKENS, engine.max_model_len // 2)
        self._prompt = ids[: engine.max_model_len - self._tokens]

    def gap(self) -> float:
        """Mean distance in nats. Raises `CallError` when it is beyond what the dtypes explain, or the engine fails."""
        import torch

        request = TokenRequest(self._prompt, Sampling(temperature=0, max_tokens=self._tokens), seed=0)
        reply = self._engine.submit(request).result(SECONDS)
        with torch.no_grad():
            (own_T,) = self._learner.token_logprobs([TokenRow(self._prompt, reply.ids)])
        distances: list[float] = [abs(a - b) for a, b in zip(reply.logprobs, own_T.tolist(), strict=True)]
        gap = sum(distances) / len(distances)
        engine_dtype = str(getattr(self._engine, "dtype", self._learner.dtype))
        allowed = max(TOLERANCE[self._learner.dtype], TOLERANCE[engine_dtype])
        if not gap <= allowed:  # not a number is not within
            raise CallError(
                f"expected engine and learner to agree on {len(distances)} log-probabilities to {allowed} nats, they "
                f"differ by {gap:.4f} at revision {self._engine.revision}: the engine does not speak with the learner's "
                "weights"
            )
        return gap
