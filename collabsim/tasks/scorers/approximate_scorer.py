"""Rounded numbers, and lists of them, as answers.

In: a reply, and golds that are decimals as somebody rounded them. Out: the number or list that the reply commits to, right
when it is within 1% of the gold or one of the two is the other one rounded. Lists are compared place by place. Left out
on purpose: units and expressions; a data set whose golds are exact wants `number`.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from collabsim.tasks.item import Answer, ItemView
from collabsim.tasks.scorers.declarations import declarations
from collabsim.tasks.scorers.number_scorer import NumberScorer
from collabsim.tasks.scorers.numbers import whole_number
from collabsim.tasks.scorers.scoring import NO_ANSWER
from collabsim.tasks.scorers.text import readable, squeezed, without_latex_text

TOLERANCE = Fraction(1, 100)
"""Relative difference up to which two numbers are the same: golds of three digits are off by up to half of it."""

FEWEST_DIGITS = 2
"""Digits that a number must be written with for another one to be rounded to it."""

_LIST = re.compile(r"[\[({](?P<inside>[^\[\](){}]+)[\])}]")
_DECIMALS = re.compile(r"-?\d*\.?\d*")


class ApproximateScorer(NumberScorer):
    """Scores answers that are a rounded number or a list of such; the canonical value is a number or a tuple of them."""

    kind = "approximate"

    def extract(self, text: str, view: ItemView, finish: str = "stop") -> Answer | None:
        """The number or list that `text` commits to, or None."""
        part = None if finish in NO_ANSWER else readable(text)
        if part is None:
            return None
        declared = declarations(part)
        for declaration in reversed(declared):
            if declaration.negated:
                break
            found = _list(declaration.text)
            if found is not None:
                return found
            if any(character.isdigit() for character in declaration.text):
                break
        whole = _list(part) if finish == "stop" and not declared else None
        return whole or super().extract(text, view, finish)

    def same(self, a: Answer, b: Answer, view: ItemView) -> bool:  # noqa: ARG002
        """Whether two answers agree to within the tolerance or by rounding, place by place."""
        if a.value == b.value:
            return True
        first, second = _parts(a), _parts(b)
        return len(first) == len(second) and all(map(_close, first, second))

    def gold(self, text: str, view: ItemView) -> Answer | None:
        """An accepted text as an answer; None when it is neither a number nor a list of numbers."""
        return _list(text) or super().gold(text, view)


def _list(text: str) -> Answer | None:
    """A text that is a bracketed list of numbers; a list of one is that number."""
    text = squeezed(without_latex_text(text).replace("\\left", "").replace("\\right", "").replace("$", " "))
    whole = _LIST.fullmatch(text.rstrip(" ."))
    if whole is None:
        return None
    values = tuple(whole_number(part.strip()) for part in whole["inside"].split(","))
    if any(value is None for value in values):
        return None
    return Answer(whole[0], values if len(values) > 1 else values[0])


def _parts(answer: Answer) -> list[tuple[Any, str]]:
    """The numbers of an answer, each with its spelling."""
    if not isinstance(answer.value, tuple):
        return [(answer.value, answer.text)]
    spellings = answer.text.strip("[](){} ").split(",")
    return list(zip(answer.value, spellings, strict=True))


def _close(a: tuple[Any, str], b: tuple[Any, str]) -> bool:
    if a[0] == b[0]:
        return True
    if not (isinstance(a[0], Fraction) and isinstance(b[0], Fraction)):
        return False
    within = abs(a[0] - b[0]) <= TOLERANCE * max(abs(a[0]), abs(b[0]))
    return within or _rounds_to(a[0], b) or _rounds_to(b[0], a)


def _rounds_to(value: Fraction, rounded: tuple[Fraction, str]) -> bool:
    """Whether `value` at the precision that `rounded` is written with is `rounded`; `2.0` counts as one digit."""
    target, spelling = rounded
    written = squeezed(spelling).strip("()[]{} ")
    if not _DECIMALS.fullmatch(written) or "." not in written:
        return False
    digits = written.lstrip("-").rstrip("0").rstrip(".")
    if len(digits.replace(".", "").lstrip("0")) < FEWEST_DIGITS:
        return False
    half = Fraction(1, 2 * 10 ** len(digits.partition(".")[2]))
    return abs(value - target) <= half
