"""A simulated model as a language model over bytes, so that ensembles can be played without weights.

In: prompts (as bytes). Out: the next-byte distribution of the text `Answer: X`, where X is the right answer with the model's
own probability and else one of the item's distractors; `no_answer_rate` goes to a text without an answer. It is a proper
autoregressive model: sampling from it byte by byte gives these texts with exactly these probabilities, up to a sliver
that every byte has (as under a softmax). Left out on purpose: filler words, and any reaction to others' answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from collabsim.item import Item
from collabsim.models.engines.logits import Vocabulary
from collabsim.models.simulation.distractors import right_answer, wrong_answers
from collabsim.request import Message, Messages

if TYPE_CHECKING:
    from collabsim.models.engines.logits import Logprobs
    from collabsim.models.simulation.answer_key import AnswerKey

END = 256
SIZE = END + 1
WINDOW = 1 << 20
_SLIVER = 1e-9
_NO_ANSWER = "<think>\n"


class Bytes:
    """A tokenizer whose ids are bytes."""

    def decode(self, ids: Sequence[int], **_: Any) -> str:
        """The text of these bytes."""
        return bytes(number for number in ids if number < END).decode(errors="replace")


VOCABULARY = Vocabulary(
    {**{f"<{number:02x}>": number for number in range(END)}, "<end>": END}, SIZE, frozenset({END}), Bytes()
)


class SimulatedLogits:
    """See `logits.LogitModel`."""

    vocabulary = VOCABULARY
    window = WINDOW
    stop: tuple[str, ...] = ()

    def __init__(
        self, key: AnswerKey, p_correct: Callable[[Item], float], *, distractors: int, no_answer_rate: float
    ) -> None:
        self._key, self._p_correct = key, p_correct
        self._distractors, self._no_answer_rate = distractors, no_answer_rate

    def render(self, messages: Messages, flags: Mapping[str, Any]) -> tuple[int, ...]:  # noqa: ARG002 (no template)
        """The messages as bytes."""
        return tuple(json.dumps(messages).encode())

    def session(self, ids: Sequence[int]) -> _Session:
        """A text that answers the messages in `ids`."""
        asked = tuple(Message(*entry) for entry in json.loads(bytes(ids)))
        return _Session(self._texts(asked))

    def _texts(self, messages: Messages) -> dict[bytes, float]:
        """What the model may say to a conversation, with probabilities."""
        match = self._key.match(messages)
        if match is None:
            return {_NO_ANSWER.encode(): 1.0}
        item = match.item
        wrong = wrong_answers(item, self._distractors)
        spoken = 1.0 - self._no_answer_rate
        right = spoken * (self._p_correct(item) if wrong else 1.0)
        texts = {f"Answer: {right_answer(item)}".encode(): right, _NO_ANSWER.encode(): self._no_answer_rate}
        for answer in wrong:
            text = f"Answer: {answer}".encode()
            texts[text] = texts.get(text, 0.0) + (spoken - right) / len(wrong)
        return texts


class _Session:
    def __init__(self, texts: Mapping[bytes, float]) -> None:
        self._texts = dict(texts)
        self._length = 0

    def step(self, ids: Sequence[int]) -> Logprobs:
        """Keep the texts that go on with `ids`; log-probabilities of the byte after them, [SIZE]."""
        for number in ids:
            self._texts = {
                text: p for text, p in self._texts.items() if text[self._length : self._length + 1] == bytes([number])
            }
            self._length += 1
        weights = np.full(SIZE, _SLIVER)
        total = sum(self._texts.values())
        if total == 0:  # another member has led the text away from all that this one would say
            weights[END] = 1.0
        for text, probability in self._texts.items() if total else ():
            weights[text[self._length] if self._length < len(text) else END] += probability / total
        logprobs: Logprobs = np.log(weights / weights.sum())
        return logprobs
