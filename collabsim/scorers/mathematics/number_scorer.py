"""Numbers as answers.

In: a reply, and golds that are numbers. Out: the number that the reply commits to, compared exactly (`1/2`, `0.5` and a
LaTeX half are one answer). The last declaration that holds a number wins; without one, an uncut reply's last number on
its own counts. Several numbers where one is asked are no answer. Left out on purpose: tolerances and expressions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from collabsim.item import Answer, ItemView
from collabsim.scorers.mathematics.answer_reader import read as read_mathematics
from collabsim.scorers.reading.declarations import Declaration, declarations, first_sentence
from collabsim.scorers.reading.numbers import (
    NUMBER_WORDS,
    Either,
    Number,
    NumberMention,
    grouped,
    number_at,
    same_number,
    value_at,
    whole_number,
    without_latex,
)
from collabsim.scorers.reading.quantities import Quantity, near_size
from collabsim.scorers.reading.scoring import NO_ANSWER, AnswerScorer, Extraction, declared_by, why_unparsed
from collabsim.scorers.reading.text import readable, squeezed

LEAD = re.compile(
    r"(?:[\s:=≈~(\[{<\"']|(?:that|therefore|thus|then|so|simply|just|only|exactly|approximately|approx\.?|about|around"
    r"|roughly|nearly|equal to|equals|given by|clearly|now|indeed|a total of|the number|the value|is)\b)+",
    re.IGNORECASE,
)
"""Words before the number of a declaration: `approximately `."""
NOT = re.compile(r"(?:\bnot|\bcannot|n't|\bnever|\brather than|\binstead of)\s+(?:\w+\s+){0,2}\Z", re.IGNORECASE)
"""A denial before a number: `is not `."""
BUT = re.compile(r"\b(?:but|it is|it's|rather|instead)\s+", re.IGNORECASE)
"""What puts another number in the denied one's place: `but 5`."""
_REJECTED = re.compile(r"\s+(?:is|was)(?:n't|\s+not)\b")
"""A denial after a number: `5 is not`."""
_BULLET = re.compile(r"^(?:[-*+•]|[0-9]{1,2}[.)])\s+(?=\S)")
"""A bullet or the number of a list's entry: `3. 42`."""
_OPERATOR = frozenset("+-*/×÷^<>·")
_START = re.compile(r"(?<![\w.])(?=[-+±$€£¥₹.]?\s?-?[$€£¥₹.]?[0-9])")
"""A place where a number may begin, as in `costs $5`."""


@dataclass(frozen=True, slots=True)
class Unclear:
    """A declaration that is no answer; nothing earlier counts either."""

    reason: str


SEVERAL = Unclear("several numbers where one is asked")
NO_NUMBER = Unclear("declared, but not one number")
NEVER_CLOSED = Unclear("box never closed")
EMPTY_BOX = Unclear("empty box")


class NumberScorer(AnswerScorer):
    """Scores answers that are one number; the canonical value is a `Fraction` (or a `Range`, or a `PlusMinus`)."""

    kind = "number"
    placeholder = "<number>"

    def extract(self, text: str, view: ItemView, finish: str = "stop") -> Answer | None:  # noqa: ARG002
        """The number that `text` commits to, or None."""
        return _extraction(text, finish).answer

    def extraction(self, text: str, view: ItemView, finish: str = "stop") -> Extraction:  # noqa: ARG002
        """`extract` with its reason."""
        return _extraction(text, finish)

    def same(self, a: Answer, b: Answer, view: ItemView) -> bool:  # noqa: ARG002
        """Whether two numbers are equal; a percentage equals what it stands for, units must not contradict."""
        return same_number(a.value, b.value)

    def near(self, answer: Answer, gold: Answer, tolerance: float) -> bool:
        """Whether the number differs from the gold by at most `tolerance` of the gold."""
        numbers = isinstance(answer.value, Fraction | Quantity) and isinstance(gold.value, Fraction | Quantity)
        return numbers and tolerance > 0 and near_size(answer.value, gold.value, tolerance)

    def gold(self, text: str, view: ItemView) -> Answer | None:  # noqa: ARG002
        """An accepted text as an answer; None when it is no number."""
        value = whole_number(text)
        return None if value is None else Answer(text, value)

    def shown_by(self, golds: Sequence[str], choices: Mapping[str, str], fields: Mapping[str, Any]) -> bool:  # noqa: ARG002
        """Whether all golds are plain numbers."""
        return all(whole_number(gold, units=False) is not None for gold in golds)


_Read = tuple[str, Number]


@lru_cache(maxsize=4096)
def _extraction(text: str, finish: str) -> Extraction:
    part = None if finish in NO_ANSWER else readable(text)
    if part is None:
        return Extraction(None, why_unparsed(text, finish))
    for declaration in reversed(declarations(part)):
        value = _declared(declaration)
        if isinstance(value, Unclear):
            return Extraction(None, f"{value.reason}: {declared_by(part, declaration.start)}")
        if value is not None:
            return Extraction(Answer(*value), declared_by(part, declaration.start))
    mention = last_mention(part) if finish == "stop" else None
    if isinstance(mention, Unclear):
        return Extraction(None, mention.reason)
    return (
        Extraction(None, why_unparsed(text, finish)) if mention is None else Extraction(Answer(*mention), "last number")
    )


def _declared(declaration: Declaration) -> _Read | Unclear | None:
    """What a declaration says: a number; unclear; or nothing that can be read, so that an earlier one may count."""
    if declaration.form == "open box":
        return NEVER_CLOSED
    if declaration.form in ("box", "tag"):
        return _enclosed(declaration.text)
    if declaration.form == "marker":
        value = whole_number(declaration.text)
        return None if value is None else (declaration.text, value)
    phrase = grouped(squeezed(without_latex(declaration.text)))
    if declaration.form == "correction":
        return _direct(phrase)
    sentence, mark = first_sentence(_after_lead(phrase))
    if declaration.form == "sentence" and "?" in mark:
        return None
    return _negated(sentence) if declaration.negated else declared_number(sentence)


def _enclosed(text: str) -> _Read | Unclear:
    """The number in a box or tags: written out, after the last equals sign, or an expression that is exactly one."""
    if not text:
        return EMPTY_BOX
    value = whole_number(text)
    if value is not None:
        return text, value
    if ("=" in text or "≈" in without_latex(text)) and (side := _last_side(squeezed(without_latex(text)))):
        return side
    reading = read_mathematics(text)
    exact = isinstance(reading.value, Fraction | Quantity) if reading else False
    return (text, reading.value) if reading and exact else NO_NUMBER  # type: ignore[return-value]


def _after_lead(phrase: str) -> str:
    lead = LEAD.match(phrase)
    return phrase[lead.end() :] if lead else phrase


def _direct(phrase: str) -> _Read | None:
    number = value_at(phrase)
    return None if number is None else _read(phrase, number)


def _read(phrase: str, number: NumberMention) -> _Read:
    return phrase[number.start : number.end].strip(), number.value


def declared_number(sentence: str) -> _Read | Unclear | None:
    """The number of a declaring sentence: what it begins with, its last side, or the last one that it mentions."""
    starts_with_number = _START.match(sentence) is not None
    if starts_with_number and (direct := _direct(sentence)):
        if _REJECTED.match(sentence, sentence.index(direct[0]) + len(direct[0])):
            return None
        beyond = sentence[len(direct[0]) :].lstrip()
        return (_last_side(sentence) or direct) if beyond.startswith(("=", "≈")) else direct
    if "=" in sentence or "≈" in sentence:
        return _last_side(sentence) or NO_NUMBER
    if starts_with_number:
        return NO_NUMBER if number_at(sentence) is None else SEVERAL
    return _in_words(sentence) or _last_number(sentence)


def _in_words(sentence: str) -> _Read | None:
    """A small number in words, with no more than a noun after it."""
    words = sentence.casefold().split()
    if (whole := " ".join(words)) in NUMBER_WORDS:
        return sentence, NUMBER_WORDS[whole]
    if not 1 <= len(words) <= 2 or words[0] not in NUMBER_WORDS or words[-1] in ("of", "hundred", "thousand"):
        return None
    return sentence.split()[0], NUMBER_WORDS[words[0]]


def _negated(sentence: str) -> _Read | None:
    """After "the answer is not": only a number that is put in the rejected one's place."""
    but = BUT.search(sentence)
    return _direct(_after_lead(sentence[but.end() :])) if but else None


def _last_side(sentence: str) -> _Read | None:
    """The number after the last equals sign that has one: `p+q = 41 + 18 = 59` is 59."""
    for side in reversed(sentence.split("=")):
        side = side.strip(" ≈")
        parts = [part.strip() for part in side.split("≈")]
        values = [(part, number) for part in parts if (number := value_at(part)) is not None]
        if len(values) > 1:
            return side, Either(tuple(number.value for _, number in values))
        if values:
            return _read(*values[0])
    return None


def _last_number(text: str) -> _Read | Unclear | None:
    """The last number of one line that is not negated and no operand; unclear if it is the last of several."""
    numbers = _numbers(text)
    for number in reversed(numbers):
        before = text[max(0, number.start - 80) : number.start].rstrip()
        if _REJECTED.match(text, number.end):
            continue
        if before[-1:] in _OPERATOR or NOT.search(text[max(0, number.start - 80) : number.start]):
            continue
        if before.endswith((",", ";", " and", " or", "&")) and _follows_number(text, numbers, number):
            return SEVERAL
        return _read(text, number)
    return None


def _numbers(text: str) -> list[NumberMention]:
    numbers: list[NumberMention] = []
    for start in _START.finditer(text):
        if not numbers or start.start() >= numbers[-1].end:
            number = value_at(text, start.start()) or number_at(text, start.start())
            if number is not None:
                numbers.append(number)
    return numbers


def last_mention(part: str) -> _Read | Unclear | None:
    """The number that the last line with a number mentions last."""
    lines = (_BULLET.sub("", squeezed(without_latex(line))) for line in reversed(part.splitlines()))
    return next((value for line in lines if (value := _last_number(line)) is not None), None)


def _follows_number(text: str, numbers: list[NumberMention], number: NumberMention) -> bool:
    """Whether only a separator lies between `number` and the number before it."""
    earlier = [other.end for other in numbers if other.end <= number.start]
    between = text[earlier[-1] : number.start].strip(" ,;&") if earlier else "no"
    return between in ("", "and", "or")
