"""Models seen as next-token distributions, for ensembles that write a text together.

In: token ids. Out: log-probabilities over a vocabulary. A `LogitModel` renders prompts and opens sessions; a session holds
the keys and values of one text. Vocabularies are compared token by token: two models of 152,000 logits each may differ
in what the ids mean, and two of different widths (padding) may mean the same. Left out on purpose: how members are
combined (`joint_model.py`), and batching of texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from collabsim.errors import ProtocolError
from collabsim.request import Messages

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Logprobs: TypeAlias = NDArray[np.float64]
    """[vocabulary], or [members, vocabulary]."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What the ids of one model mean."""

    tokens: Mapping[str, int]
    """Token to id: the tokenizer's whole table, added tokens included."""
    size: int
    """Number of logits, padding included."""
    end_ids: frozenset[int]
    """Ids that end a reply."""
    tokenizer: Any = field(compare=False, repr=False)
    """Decodes ids, as a transformers tokenizer does."""


class LogitSession(Protocol):
    """One text in progress."""

    def step(self, ids: Sequence[int]) -> Logprobs:
        """Append `ids` (none, before the first token) and give the log-probabilities of the next one, [size].

        Raises `CallError` when the model fails.
        """


class LogitEngine(Protocol):
    """What a running engine offers where its kind `shows_logits`."""

    tokenizer: Any
    """A transformers tokenizer."""
    end_ids: frozenset[int]

    @property
    def max_model_len(self) -> int:
        """Longest prompt plus reply, in tokens."""

    @property
    def logit_count(self) -> int:
        """Width of its next-token distributions, padding included."""

    def session(self, prompt_ids: Sequence[int]) -> LogitSession:
        """A text that starts with `prompt_ids`, led from outside. Raises `CallError` when the engine is closed."""


class LogitModel(Protocol):
    """A model that shows its next-token distribution. Thread-safe; a session belongs to one thread."""

    @property
    def vocabulary(self) -> Vocabulary:
        """What its ids mean."""

    @property
    def window(self) -> int:
        """Longest prompt plus reply, in tokens."""

    @property
    def stop(self) -> tuple[str, ...]:
        """Stop strings of its chat format."""

    def render(self, messages: Messages, flags: Mapping[str, Any]) -> tuple[int, ...]:
        """The ids of a prompt that asks for the next reply."""

    def session(self, ids: Sequence[int]) -> LogitSession:
        """A text that begins with the prompt `ids`."""


def logit_model(model: Any) -> LogitModel:
    """The next-token distributions of a chat model, its engine started if need be.

    Raises `ProtocolError` for a model that shows none (one behind a server), `ConfigError` for one on another engine.
    """
    shown = getattr(model, "logit_model", None)
    if not callable(shown):
        raise ProtocolError(
            f"expected models that show their next-token distribution (local ones on `engine: transformers`), got a "
            f"{type(model).__name__}; change the pool or the protocol"
        )
    opened: LogitModel = shown()
    return opened


def shared_ids(vocabularies: Sequence[Vocabulary]) -> frozenset[int]:
    """The ids that are real tokens, and the same tokens, in all vocabularies.

    Tokens that only some have (added chat markers, padding rows of the embedding) are left out. Raises `ProtocolError`
    when a token has two ids, when an id is two tokens, or when no common token ends a reply.
    """
    first, *others = vocabularies
    shared = dict(first.tokens)
    for other in others:
        if other.tokens is not first.tokens:
            check_same_tokens(first.tokens, other.tokens)
            shared = {token: number for token, number in shared.items() if token in other.tokens}
    size = min(vocabulary.size for vocabulary in vocabularies)
    ids = frozenset(number for number in shared.values() if number < size)
    if ids.isdisjoint(end_ids(vocabularies)):
        raise ProtocolError(
            "these models share no token that ends a reply, so their ensemble could never stop; use models of one family"
        )
    return ids


def end_ids(vocabularies: Sequence[Vocabulary]) -> frozenset[int]:
    """The ids that end a reply for any of the models."""
    return frozenset().union(*(vocabulary.end_ids for vocabulary in vocabularies))


def check_same_tokens(first: Mapping[str, int], second: Mapping[str, int]) -> None:
    """Raises `ProtocolError` when a token has two ids in two tables of tokens, or an id is two tokens."""
    words = {number: token for token, number in first.items()}
    for token, number in second.items():
        here = first.get(token, number)
        meant = words.get(number, token)
        if here != number or meant != token:
            raise ProtocolError(
                f"expected models with one vocabulary, but in one {token!r} is id {number}, in another "
                + (f"it is id {here}" if here != number else f"that id is {meant!r}")
                + "; this protocol needs members of one model family"
            )
