"""A local model as next-token distributions.

In: a prompter and a running engine that shows them. Out: a `LogitModel`. Left out on purpose: finding and starting either
(`local_model.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from collabsim.models.engines.logits import LogitEngine, LogitSession, Vocabulary
from collabsim.request import Messages

if TYPE_CHECKING:
    from collabsim.models.local.template import Prompter


class LocalLogits:
    """See `logits.LogitModel`."""

    def __init__(self, prompter: Prompter, engine: LogitEngine) -> None:
        self._prompter = prompter
        self._engine = engine

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokenizer's table, and the width of the model's logits."""
        engine = self._engine
        return _vocabulary(engine.tokenizer, engine.logit_count, engine.end_ids)

    @property
    def window(self) -> int:
        """Longest prompt plus reply, in tokens."""
        return self._engine.max_model_len

    @property
    def stop(self) -> tuple[str, ...]:
        """Stop strings of its chat format."""
        return self._prompter.stop

    def render(self, messages: Messages, flags: Mapping[str, Any]) -> tuple[int, ...]:
        """The ids of a prompt that asks for the next reply."""
        return self._prompter.render(messages, flags)

    def session(self, ids: Sequence[int]) -> LogitSession:
        """A text that begins with the prompt `ids`."""
        return self._engine.session(ids)


@lru_cache(maxsize=64)
def _vocabulary(tokenizer: Any, size: int, ends: frozenset[int]) -> Vocabulary:
    """Made once per tokenizer: the table of a large one takes a tenth of a second."""
    return Vocabulary(tokenizer.get_vocab(), size, ends, tokenizer)
