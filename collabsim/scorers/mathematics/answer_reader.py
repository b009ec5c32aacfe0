r"""Answers of mathematics, read into values.

In: an answer as written, LaTeX or not: a gold, a box, what a sentence declares. Out: a `Reading`: a number, expression,
interval, list, matrix, equation or text (see `answer_values.py`), or None when it says nothing, or yes and no at once. Left
out on purpose: finding the answer in a reply (`expression_scorer.py`), and when two values are the same (`equality.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from collabsim.scorers.mathematics.answer_values import (
    Expression,
    Interval,
    Listing,
    Matrix,
    Named,
    Opaque,
    Reading,
    Union,
    Value,
    Vast,
    Words,
    is_prose,
    scalar,
)
from collabsim.scorers.mathematics.brackets import inside_brackets, items, matrix_cells, split
from collabsim.scorers.mathematics.expression_tree import Node, TooLarge, symbols_of
from collabsim.scorers.mathematics.latex import LONGEST, compact, plain_math
from collabsim.scorers.mathematics.notations import FORMS
from collabsim.scorers.mathematics.parser import parse
from collabsim.scorers.mathematics.relations import read_relation
from collabsim.scorers.mathematics.tokens import UnreadableExpression
from collabsim.scorers.reading.numbers import Range
from collabsim.scorers.reading.quantities import Quantity, unit_of, with_unit
from collabsim.scorers.reading.text import without_markup

_LABEL = re.compile(r"(yes|no|true|false)\b(?P<stop>\s*(?:[,.;:!—-]|\Z))?", re.IGNORECASE)
"""Yes or no: `Yes, always`."""
_SAME_LABEL = {"true": "yes", "false": "no"}
_JOIN = re.compile(r"\s*∪\s*|\s+or\s+|\s+and\s+")
"""What joins intervals: `[0,1] ∪ [2,3]`."""
_BAR = re.compile(r"\s*[|:]\s*")
"""What divides a set's variable from its condition: `{x | x>0}`."""
_LEAD = re.compile(
    r"(?:approximately|approx\.?|about|around|roughly|exactly|nearly|just|only|simply|a total of|equal to|equals|[≈=:])\s+"
    r"|[≈=:]",
    re.IGNORECASE,
)
"""Words before a value: `approximately 3`."""
_MINUS_WORD = re.compile(r"(?:minus|negative)\s+(?=[0-9])", re.IGNORECASE)
"""A sign in words: `negative 5`."""
_UNIT = r"[A-Za-zµ]+\.?(?:\s?\^\s?\{?\s?-?[0-9]\s?\}?)?"
_TAIL = re.compile(
    rf"(?P<value>.*?[0-9A-Za-z)}}\]π])(?P<unit>\s?[%°](?:\s?[CF]\b)?|\s?/\s?{_UNIT}|\s(?:{_UNIT}(?:\s?[/*]\s?|\s|-))*{_UNIT})\)?"
)
"""A value with its unit: `5 cm^2`."""
_SHORT_TAIL = re.compile(r"(?P<value>[-+]?[0-9.,]+)(?P<unit>[a-zµ]?[a-zA-Z][mglsLWVJzNh]|°[CF])")
"""A value with a unit joined to it: `5km`."""
_UNIT_POWER = re.compile(r"\s?\^\s?\{?\s?(-?[0-9])\s?\}?")
"""The power of a unit: `m^2`."""
_PROSE = re.compile(r"[A-Za-z]{3,}")
"""A word, which is no product of variables: `apples`."""
_IN_BRACKETS = re.compile(r"\s\(\s?([A-Za-z]{2}[A-Za-z° /]*)\)\Z")
"""A unit in brackets: `5 (cm)`."""
_POINT = re.compile(r"[A-Z]'? ?(?=\([^()]+,[^()]+\)\Z)")
"""The name of a point: `P(1, 2)`."""
_UNIT_PART = re.compile(r"\s?[/*]\s?|\s+(?:per\s+)?|-")
"""What stands between the parts of a unit: `km/h`."""
_NO_UNIT = frozenset(
    (
        *("squared", "cubed", "factorial", "times", "plus", "minus", "over", "choose", "halves", "thirds", "quarters"),
        *("more", "less", "divided", "or", "and", "is", "are", "was", "not"),
    )
)
_FUNCTION = re.compile(r"(?:sin|cos|tan|cot|sec|csc)")
"""A name that is no unit: `sin`."""
_LATEX = re.compile(r"\\[A-Za-z]|[=<>≤≥≠∈^∪∩∖]|[0-9] ?[-+*/] ?[0-9]")
"""A sign that an answer is mathematics and no text: `3 + 4`."""
_NOT_A_NUMBER = frozenset({"nan", "null", "n/a"})
_OUTWARD = re.compile(r"([\[\]])([^\[\]]+,[^\[\]]+)([\[\]])")
"""An interval with brackets that point away from open ends: `]1, 3[`."""


def _inward(match: re.Match[str]) -> str:
    """An interval in brackets that point away from an open end, `]1, 3[`, in round ones."""
    return f"{'[' if match[1] == '[' else '('}{match[2]}{']' if match[3] == ']' else ')'}"


@lru_cache(maxsize=4096)
def read(text: str) -> Reading | None:
    """The value of a text that holds nothing but an answer. Never raises."""
    text = without_markup(text.strip())
    plain = plain_math(text).strip("\"'").rstrip(".,;:").strip() if len(text) <= LONGEST else text
    if not plain or plain.casefold() in _NOT_A_NUMBER:
        return None
    plain = _OUTWARD.sub(_inward, plain)
    value = _value(plain) if len(text) <= LONGEST else Words(plain.casefold())
    return None if value is None else Reading(value, compact(plain), text)


def _value(text: str, depth: int = 0) -> Value | None:
    """The value of plain mathematics; None for a text that contradicts itself or is empty."""
    if not text or depth > 12:
        return None
    for reader in FORMS:
        value = reader(text)
        if value is not None:
            return value
    label = _LABEL.match(text)
    if label and (label["stop"] is not None or _says_both(label[1], text)):
        return None if _says_both(label[1], text) else Words(_SAME_LABEL.get(label[1].casefold(), label[1].casefold()))

    def inner(part: str) -> Value | None:
        return _value(part, depth + 1)

    for structure in (_matrix, _union, _relation, _enclosed, _bare_list, _with_tail, _scalar):
        value = structure(text, inner)
        if value is not None:
            return value
    return Opaque(compact(text)) if _LATEX.search(text) and not _is_text(text) else _words(text)


def _is_text(text: str) -> bool:
    """Whether a text with signs of mathematics is a sentence all the same."""
    return len(_PROSE.findall(re.sub(r"\\[A-Za-z]+", "", text))) > 2


def _words(text: str) -> Value | None:
    lead = _LEAD.match(text)
    if lead and lead.end() < len(text):
        return _value(text[lead.end() :].strip(), 12)
    return Words(text.casefold().strip("\"'.,;:!() ")) if re.search(r"\w", text) else Words(text)


def _says_both(label: str, text: str) -> bool:
    """Whether a text that begins with yes or no (true or false) says the other one too."""
    other = r"\b(?:no|false)\b" if label.casefold() in ("yes", "true") else r"\b(?:yes|true)\b"
    return re.search(other, text, re.IGNORECASE) is not None


_Inner = Callable[[str], Value | None]


def _matrix(text: str, inner: _Inner) -> Matrix | None:
    rows = []
    for row in matrix_cells(text) or ():
        cells = [cell for cell in map(inner, row) if cell is not None]
        if len(cells) != len(row):
            return None
        rows.append(tuple(cells))
    return Matrix(tuple(rows)) if rows else None


def _union(text: str, inner: _Inner) -> Union | None:
    parts = split(text, _JOIN)
    if len(parts) < 2 or not all(parts):
        return None
    intervals: list[Interval] = []
    for part in parts:
        value = inner(part)
        if isinstance(value, Listing) and "∪" in text:
            value = as_interval(value)
        if isinstance(value, Interval):
            intervals.append(value)
        elif isinstance(value, Union):
            intervals += value.parts
        else:
            return None
    return Union(tuple(intervals))


def as_interval(value: Listing) -> Interval | None:
    """A pair in round or square brackets as the interval it may be."""
    if len(value.items) != 2 or value.opening not in ("(", "[") or value.closing not in (")", "]"):
        return None
    return Interval(*value.items, value.opening == "[", value.closing == "]")


def _relation(text: str, inner: _Inner) -> Value | None:
    if len(items(text)) > 1:
        return None
    return read_relation(text, inner)


def _enclosed(text: str, inner: _Inner) -> Value | None:
    text = _POINT.sub("", text, count=1)
    content = inside_brackets(text)
    if content is None:
        return None
    parts = items(content, enclosed=True)
    if text[0] == "⦃" and len(set_builder := split(content, _BAR)) == 2:
        return inner(set_builder[1])
    if len(parts) == 1 and text[0] in "({":
        return inner(content)
    values = [value for value in map(inner, parts) if value is not None]
    if len(values) != len(parts) or (len(values) == 1 and is_prose(values[0]) and text[0] == "["):
        return None
    opening, closing = {"⦃": "{", "⟨": "("}.get(text[0], text[0]), {"⦄": "}", "⟩": ")"}.get(text[-1], text[-1])
    return Listing(opening, closing, tuple(values))


def _bare_list(text: str, inner: _Inner) -> Value | None:
    parts = [part for part in items(text) if part]
    if len(parts) < 2:
        return None
    values: list[Value] = []
    for part in parts:
        value = inner(part)
        if value is None or (values and is_prose(value) != is_prose(values[0])):
            return None
        values += value.items if isinstance(value, Listing) and not value.opening else (value,)
    intervals = tuple(value for value in values if isinstance(value, Interval))
    if len(intervals) == len(values):
        return Union(intervals)
    names = [value.name for value in values if isinstance(value, Named)]
    if len(names) == len(values) == len(set(names)):
        return Listing(
            "(", ")", tuple(value for _, value in sorted(zip(names, values, strict=True), key=lambda pair: pair[0]))
        )
    return Listing("", "", tuple(values))


def _with_tail(text: str, inner: _Inner) -> Value | None:
    """A scalar with known units; with other words, once it is clear that they are no variables."""
    text = _IN_BRACKETS.sub(r" \1", text)
    match = _SHORT_TAIL.fullmatch(text) or _TAIL.fullmatch(text)
    if match is None:
        return None
    if "°" in match["unit"] and _FUNCTION.search(match["value"]):
        return None  # an angle inside
    words = _UNIT_POWER.sub(r"^\1", match["unit"]).replace("° ", "°").strip().lstrip("/").strip()
    known = [unit_of(part.split("^")[0]) is not None for part in _UNIT_PART.split(words) if part] + [
        unit_of(words) is not None
    ]
    if not (known[-1] or all(known[:-1])) and (_tree(text) is not None or _NO_UNIT & set(words.casefold().split())):
        return None
    if match.re is _SHORT_TAIL and not known[-1]:
        return None
    value = inner(match["value"].strip())
    if isinstance(value, Fraction):
        return with_unit(value, words)
    return value if isinstance(value, Expression | Range | Quantity | Listing | Vast) else None


def _scalar(text: str, inner: _Inner) -> Value | None:  # noqa: ARG001
    text = _MINUS_WORD.sub("-", text)
    try:
        node = parse(text)
    except TooLarge:
        return Vast(compact(text))
    except (UnreadableExpression, RecursionError):
        return None
    if not symbols_of(node) & {"±", "∓"}:
        return scalar(node)
    both = [parse(text.replace("±", plus).replace("∓", minus)) for plus, minus in ("+-", "-+")]
    return Listing("", "", tuple(map(scalar, both)))


def _tree(text: str) -> Node | None:
    try:
        return parse(text)
    except (TooLarge, UnreadableExpression, RecursionError):
        return None
