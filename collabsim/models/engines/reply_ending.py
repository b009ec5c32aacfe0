"""The end of a reply, and its text.

In: the ids sampled so far. Out: a finished `Generation`, or None while the reply goes on. A reply ends with an end token
of the model, with a stop string (also one that begins in one token and ends in another), or at `max_tokens`. Left out on
purpose: streaming of partial text.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from collabsim.models.engines.engine import Generation
from collabsim.request import Sampling

_SLACK = 8
"""Tokens decoded beyond the longest stop string: the first ones of a tail may be halves of characters."""


class Endings:
    """Decides about replies in one tokenizer. `tokenizer` is a transformers tokenizer."""

    def __init__(self, tokenizer: Any, end_ids: Collection[int]) -> None:
        self._tokenizer = tokenizer
        self.end_ids = frozenset(end_ids)

    def text(self, ids: Sequence[int]) -> str:
        """The ids in words, without special tokens."""
        return str(self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def finished(self, ids: Sequence[int], logprobs: Sequence[float], sampling: Sampling) -> Generation | None:
        """The generation, if its last token ends it. `ids` is not empty."""
        if ids[-1] in self.end_ids:
            return Generation(tuple(ids), tuple(logprobs), self.text(ids[:-1]), "stop")
        text = self._stopped(ids, sampling.stop)
        if text is not None:
            return Generation(tuple(ids), tuple(logprobs), text, "stop")
        if len(ids) >= sampling.max_tokens:
            return Generation(tuple(ids), tuple(logprobs), self.text(ids), "length")
        return None

    def _stopped(self, ids: Sequence[int], stop: tuple[str, ...]) -> str | None:
        """The text before the first stop string, or None without one.

        Every token but a special one adds a byte or more, so a stop string that ends in the last token begins in the
        tail that is decoded at each step; the whole reply is decoded only once that has been seen.
        """
        if not stop:
            return None
        tail = max(len(string.encode()) for string in stop) + _SLACK
        if len(ids) > tail and _first(self.text(ids[-tail:]), stop) is None:
            return None
        return _first(self.text(ids), stop)


def _first(text: str, stop: tuple[str, ...]) -> str | None:
    stops = [place for string in stop if (place := text.find(string)) >= 0]
    return text[: min(stops)] if stops else None
