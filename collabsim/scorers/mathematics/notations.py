r"""Notations that are no expressions: plain numbers, ranges, ratios and times, digits in a base, sets by name.

In: plain mathematics (see `latex.py`), all of an answer. Out: its value, or None, so that the next form is tried. Left
out on purpose: whatever has parts; see `answer_reader.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

from collabsim.scorers.mathematics.answer_values import REALS, Based, Ratio, Union, Value, Words
from collabsim.scorers.reading.numbers import NUMBER_WORDS, Range

_DIGITS = r"(?:[1-9][0-9]{0,2}(?:,[0-9]{3})+|[0-9]{1,400})(?:\.[0-9]{1,400})?|\.[0-9]{1,400}"
_PLAIN = re.compile(rf"([-+]?) ?({_DIGITS})(?: ?/ ?([1-9][0-9]{{0,50}}))?\.?")
"""A number, or a fraction of two: `-3/4`."""
_RANGE = re.compile(rf"({_DIGITS}) ?(?:-|–|—|to|through|\.\.\.?|…) ?({_DIGITS})(?: [A-Za-z%°]+)*")
"""A range with its unit: `10-15 cm`."""
_RATIO = re.compile(r"([0-9]{1,18}(?: ?: ?[0-9]{1,18})+)(?: ?([ap])\.?m\.?)?", re.IGNORECASE)
"""A ratio, or a time of day: `3:2`, `4:30 pm`."""
_BASED = re.compile(r"\(?([0-9A-Fa-f]{1,400})\)?\s?_\s?\{?\s?([0-9]{1,2}|[a-z]{3,9})\s?\}?")
"""Digits in a base: `1011_2`."""
_EMPTY = re.compile(
    r"∅|[⦃{] ?[⦄}]|(?:the )?empty set|no(?: real| integer| such)? (?:solutions?|roots?)|none", re.IGNORECASE
)
"""The empty set: `no real solutions`."""
_UNDEFINED = re.compile(r"undefined|dne|does not exist|not defined|indeterminate", re.IGNORECASE)
"""A value that does not exist: `undefined`."""
_ALL = re.compile(
    r"ℝ|\(-∞,\s?∞\)|all real(?: number)?s(?: [a-z])?|(?:the )?set of (?:all )?real numbers", re.IGNORECASE
)
"""The set of real numbers: `all real numbers`."""


def _plain_number(text: str) -> Fraction | None:
    match = _PLAIN.fullmatch(text)
    if match is None:
        return NUMBER_WORDS.get(text.casefold())
    size = Fraction(match[2].replace(",", "")) / int(match[3] or 1)
    return -size if match[1] == "-" else size


def _range(text: str) -> Range | None:
    match = _RANGE.fullmatch(text)
    low, high = (Fraction(match[k].replace(",", "")) for k in (1, 2)) if match else (Fraction(0), Fraction(0))
    return Range(low, high) if low < high else None


def _ratio(text: str) -> Ratio | None:
    match = _RATIO.fullmatch(text)
    return Ratio(tuple(map(int, match[1].split(":"))), (match[2] or "").lower()) if match else None


def _based(text: str) -> Based | None:
    match = _BASED.fullmatch(text)
    if match is None or not (match[2].isdigit() or match[2] in NUMBER_WORDS):
        return None
    return Based(match[1].upper(), str(NUMBER_WORDS.get(match[2], match[2])))


def _special(text: str) -> Value | None:
    if _EMPTY.fullmatch(text):
        return Union(())
    if _UNDEFINED.fullmatch(text):
        return Words("undefined")
    return REALS if _ALL.fullmatch(text) else None


FORMS: tuple[Callable[[str], Value | None], ...] = (_plain_number, _range, _ratio, _based, _special)
"""Readers of all forms, in the order in which they are tried."""
