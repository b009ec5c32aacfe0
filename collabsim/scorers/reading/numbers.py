r"""Numbers as people and models write them, read exactly.

In: plain text (see `text.py`), LaTeX or not. Out: a `Fraction`, `Quantity`, `Range`, `PlusMinus`, or None. The grammar
is our own and strict: thousands separators only between digit triples, no `nan`, `inf` or `1_000`, `10-15` is a range and
never a difference, `10:30` and `3,4` are no numbers. Currency and words are read over; a unit or scale that is known makes a
`Quantity` (`75%`, `18 cm`, `3 million`).
Left out on purpose: expressions (`2+3`, `\sqrt{2}`), which have no value here, and decimal commas, which are ambiguous.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from collabsim.scorers.reading.quantities import SCALES, Quantity, same_size, with_unit
from collabsim.scorers.reading.text import plain_characters, squeezed, without_latex_text, without_markup

MAX_DIGITS = 400
"""Longest numeral and largest power of ten that are read: more is no answer, and must not cost time either."""


@dataclass(frozen=True, slots=True)
class Range:
    """`low` to `high`; equal only to the same range."""

    low: Fraction
    high: Fraction


@dataclass(frozen=True, slots=True)
class PlusMinus:
    """Two values at once; never equal to one of them."""

    size: Fraction


@dataclass(frozen=True, slots=True)
class Either:
    """An exact value and its rounding, as in `2/3 ≈ 0.667`; equal to what equals one of them."""

    values: tuple[Any, ...]


Number = Fraction | Quantity | Range | PlusMinus | Either

_SMALL = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
NUMBER_WORDS = {
    **{name: Fraction(size) for size, name in enumerate(_SMALL)},
    **{name: Fraction(10 * size) for size, name in enumerate(_TENS, start=2)},
    **{
        f"{tens}{join}{_SMALL[ones]}": Fraction(10 * size + ones)
        for size, tens in enumerate(_TENS, start=2)
        for ones in range(1, 10)
        for join in ("-", " ")
    },
    **{"one hundred": Fraction(100), "a hundred": Fraction(100), "one thousand": Fraction(1000)},
}
"""Numbers in words, as far as answers use them."""

_PLAIN = r"(?:[1-9][0-9]{0,2}(?:,[0-9]{3})+(?![0-9])(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?|\.[0-9]+)"
_CURRENCY = r"(?:(?:US\s?)?[$€£¥₹]\s?)"
_EXPONENT = r"[{{(]?\s?(?P<{}>[-+]?[0-9]+)\s?[)}}]?"
_NUMBER = re.compile(
    rf"(?P<sign>[-+]|±\s?)?{_CURRENCY}?(?P<inner>-?)(?:"
    r"(?P<whole>[0-9]+)\s+(?P<part>[0-9]+)\s?/\s?(?P<of>[0-9]+)"
    rf"|(?P<over>{_PLAIN})\s?/\s?(?P<under>{_PLAIN})"
    rf"|(?P<mantissa>{_PLAIN})(?:[eE](?P<e>[-+]?[0-9]+)|\s?[×*x·]\s?10\s?(?:\^|\*\*)\s?{_EXPONENT.format('ten')})"
    rf"|(?P<base>{_PLAIN})\s?(?:\^|\*\*)\s?{_EXPONENT.format('power')}"
    rf"|(?P<plain>{_PLAIN}))"
)
"""A number in any notation: `-3 1/2`, `1,200`, `4e3`, `2^10`."""
_UNITS = (
    r"(?:%|°\s?[CFK]?|(?:[cmkµ]?m|[mkµ]?g|[mk]?[lL]|min|ms|hrs?|[hsJNWVAK]|[kM]?Hz|k?Pa|k?cal|kWh|mph|ft|in|lbs?|oz)"
    r"(?![A-Za-z]))"
)
_POWER_OR_RATE = r"(?:\^\{?-?[0-9]\}?)?(?:/[A-Za-z]+)?"
_AFTER = re.compile(rf"\s?{_UNITS}{_POWER_OR_RATE}")
"""A unit in short form: ` km/h`."""
_UNIT_WORDS = re.compile(rf"(?:/|\s)?\s?[A-Za-z°%][A-Za-z°%/.]*{_POWER_OR_RATE}(?: [A-Za-z°%/.^]+){{0,3}}")
"""Units in words: ` metres per second`."""
_UNIT_NAME = re.compile(
    r"\s?(?:%|°\s?[CF]?\b|°|(?!in\s[a-z])(?:(?:square|cubic|sq\.?|cu\.?)\s+)?[A-Za-zµ]+(?:\^\{?[23]\}?)?)"
)
"""The one unit that is looked up: ` square metres`."""
_JOINED_LEFT = re.compile(r"(?:[\w)\]}!][-+]|[\w\\^{√|]|[0-9][.,:/]|\.)\Z")
"""What makes the number after it a part of something longer: `x-`."""
_JOINED_RIGHT = re.compile(
    r"[\w^({]|\s?\\|!(?=[^\s.]|\s?[-+*/×÷^=])|[.,:/][0-9]"
    r"|\s?[+*×÷^·]\s?[\w(\\.$]|\s?/\s?(?:[0-9(\\]|[A-Za-z](?![A-Za-z]))|\s?-\s?[A-Za-z(\\]"
    r"|\s?(?:pi|sqrt|[xyz])\b|\s?[√π]"
)
"""What makes the number before it a part of something longer: ` + 3`."""
_RANGE = re.compile(r"\s?(?:[-–—]|\.\.+|\b(?:to|through)\b)\s?")
"""What stands between the ends of a range: ` to `."""
_LIST = re.compile(r"\s?(?:[,;&]|,?\s?\b(?:and|or)\b)\s?")
"""What stands between several numbers: `, and `."""
_UNIT_AND = re.compile(r"\s[A-Za-z]+,?\s(?:and|or|&)\s")
"""A unit between two numbers of a list: `3 apples and 4`."""

_SPACED = re.compile(r"\A[-+]?[1-9][0-9]{0,2}(?: [0-9]{3})+(?![0-9]|[.,/][0-9]|\s?[0-9])")
"""Digit triples with blanks between them: `12 000`."""
_FRAC = re.compile(
    r"(?P<before>[0-9])?\s?\\[dtc]?frac\s*(?:\{\s*(?P<a>[^{}]*?)\s*\}\s*|(?P<a1>[0-9]))(?:\{\s*(?P<b>[^{}]*?)\s*\}|\s*(?P<b1>[0-9]))"
)
r"""A fraction of plain numbers: `\frac{1}{2}`."""
_LATEX = [
    # Layout and dollar signs: `\left`.
    (re.compile(r"\\left(?![a-z])|\\right(?![a-z])|\\[,;:! ]|\\q?quad|~|\$(?![0-9.])"), ""),
    # A comma between digit triples: `{,}`.
    (re.compile(r"\{,\}"), ","),
    # A sign of multiplication: `\times`.
    (re.compile(r"\\(?:times|cdot|ast)(?![a-z])"), "×"),
    # Two signs at once: `\pm`.
    (re.compile(r"\\pm(?![a-z])"), "±"),
    # A rounding: `\approx`.
    (re.compile(r"\\approx(?![a-z])|\\sim(?![a-z])"), "≈"),
    # An escaped sign: `\%`.
    (re.compile(r"\\([%$])"), r"\1"),
    # Degrees: `^\circ`.
    (re.compile(r"\s*\^\s*\{?\s*\\circ\s*\}?|\\degree"), "°"),
]


def without_latex(text: str) -> str:
    r"""LaTeX number notation in plain signs: `\frac{1}{2}` is `1/2`, `\times` is `×`, `\left`, `\,` and `$` go."""
    if "\\" in text or "$" in text or "{" in text or "~" in text:
        text = without_latex_text(text)
        for pattern, plain in _LATEX:
            text = pattern.sub(plain, text)
        text = _FRAC.sub(_slashed, text)
    return text


def _slashed(match: re.Match[str]) -> str:
    over, under = match["a"] or match["a1"] or "", match["b"] or match["b1"] or ""
    if not (re.fullmatch(rf"-?{_PLAIN}", over) and re.fullmatch(_PLAIN, under)):
        return match[0]
    return f"{match['before'] or ''}{' ' if match['before'] else ''}{over}/{under}"


@dataclass(frozen=True, slots=True)
class NumberMention:
    """A number at a place in a text."""

    value: Number
    start: int
    end: int
    """Where the number ends, its unit included."""


def number_at(text: str, start: int = 0, *, joined: bool = False) -> NumberMention | None:
    """The number that begins at `start`, if one stands there on its own (`joined`: whatever comes before it)."""
    match = _NUMBER.match(text, start)
    if match is None or (not joined and _continues(text, match)):
        return None
    value = _value(match)
    unit = _AFTER.match(text, match.end())
    end = unit.end() if unit else match.end()
    if value is None or _JOINED_RIGHT.match(text, end):
        return None
    return (
        NumberMention(value, match.start(), end)
        if not isinstance(value, Fraction)
        else _measured(text, match, value, end)
    )


def _measured(text: str, match: re.Match[str], size: Fraction, end: int) -> NumberMention:
    """A number with the unit or scale that is written after it."""
    named = _UNIT_NAME.match(text, match.end())
    if named is None or text[named.end() : named.end() + 1] in ("/", "^") or text.startswith(" per ", named.end()):
        return NumberMention(size, match.start(), end)
    value = with_unit(size, named[0])
    if named[0].strip().casefold() in SCALES:
        end = named.end()
    return NumberMention(value, match.start(), max(end, match.end()))


def _continues(text: str, match: re.Match[str]) -> bool:
    """Whether the match is the rest of something longer: a word, a version, a difference, a hyphenated name."""
    before = text[max(0, match.start() - 3) : match.start()]
    if match["sign"] and before.rstrip(" ")[-1:].isdigit():
        return True
    return bool(_JOINED_LEFT.search(before + (match["sign"] or "") if match["sign"] else before))


def _value(match: re.Match[str]) -> Number | None:
    if len(match[0]) > MAX_DIGITS:
        return None
    size = _size(match.groupdict())
    if size is None or (match["sign"] or "").strip() != "±":
        return -size if size is not None and (match["sign"] == "-") != (match["inner"] == "-") else size
    return None if match["inner"] else PlusMinus(size)


def _size(groups: dict[str, str | None]) -> Fraction | None:
    """The value without its sign; None when it has none (a zero denominator) or would be absurdly long."""
    if groups["whole"]:
        part = _quotient(groups["part"], groups["of"])
        return int(groups["whole"]) + part if part is not None and part < 1 else None
    if groups["over"]:
        return _quotient(groups["over"], groups["under"])
    if groups["mantissa"]:
        power = _power("10", int(groups["e"] or groups["ten"] or 0))
        return None if power is None else _decimal(groups["mantissa"]) * power
    if groups["base"]:
        return _power(groups["base"], int(groups["power"] or 0))
    return _decimal(groups["plain"] or "")


def _quotient(over: str | None, under: str | None) -> Fraction | None:
    divisor = _decimal(under or "")
    return _decimal(over or "") / divisor if divisor else None


def _power(base: str, exponent: int) -> Fraction | None:
    value = _decimal(base)
    if abs(exponent) * (len(base) - 1 or 1) > MAX_DIGITS or (value == 0 and exponent < 0):
        return None
    return value**exponent


def _decimal(text: str) -> Fraction:
    return Fraction(text.replace(",", ""))


def value_at(text: str, start: int = 0) -> NumberMention | None:
    """The value that begins at `start`: a number, or a range of two. None if several numbers stand there."""
    first = number_at(text, start)
    if first is None:
        return None
    dash = _RANGE.match(text, first.end)
    if dash and text[dash.end() : dash.end() + 1].isdigit():
        return _range(text, first, dash.end())
    for separator in (_LIST.match(text, first.end), _UNIT_AND.match(text, first.end)):
        if separator and number_at(text, separator.end(), joined=True):
            return None
    return first


def _range(text: str, first: NumberMention, start: int) -> NumberMention | None:
    second = number_at(text, start, joined=True)
    if second is None or not (isinstance(first.value, Fraction) and isinstance(second.value, Fraction)):
        return None
    third = _RANGE.match(text, second.end)
    if third and text[third.end() : third.end() + 1].isdigit():
        return None
    return NumberMention(Range(first.value, second.value), first.start, second.end)


@lru_cache(maxsize=4096)
def whole_number(text: str, *, units: bool = True) -> Number | None:
    """The value of a text that holds nothing but a number: a gold, a box.

    Read over: `x=`, outer brackets and quotes, a final dot, and unit words unless `units` is False. `1/2`, `2 1/2`,
    `1.2e-3`, `1.2 × 10^-3`, LaTeX fractions, `10-15` and `± 6` are values.
    """
    text = grouped(squeezed(without_latex(plain_characters(without_markup(text))))).rstrip(".").strip()
    while len(text) > 1 and text[0] + text[-1] in ("()", "[]", '""', "''", "{}", "<>"):
        text = text[1:-1].strip()
    text = re.sub(r"^[A-Za-z]\w{0,8}\s?=\s?|^=\s?", "", text)
    number = value_at(text)
    if number is None:
        return None
    rest = text[number.end :]
    if rest and not (units and _UNIT_WORDS.fullmatch(rest)):
        return None
    return number.value.size if isinstance(number.value, Quantity) and not units else number.value


def grouped(text: str) -> str:
    """`text` without the blank in a number that begins it and is grouped by blanks: `12 480`."""
    return _SPACED.sub(lambda match: match[0].replace(" ", ""), text)


def same_number(a: object, b: object) -> bool:
    """Whether two values are the same number, units considered. Symmetric."""
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Either) and not isinstance(other, Either):
            return any(same_number(value, other) for value in one.values)
    if isinstance(a, Fraction | Quantity) and isinstance(b, Fraction | Quantity):
        return same_size(a, b)
    return bool(a == b)
