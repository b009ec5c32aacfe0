"""Equations, inequalities and membership as values.

In: plain mathematics with a relation sign outside brackets, and a reader of its sides. Out: a named value (`x = 3`), an
equation, an interval (`x < 3` is the same as `(-∞, 3)`), or None where no rule holds. Left out on purpose: systems, and
inequalities in several variables.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

from collabsim.scorers.mathematics import expression_tree as nodes
from collabsim.scorers.mathematics.answer_values import (
    NEGATIVE_INFINITY,
    POSITIVE_INFINITY,
    Equation,
    Expression,
    Interval,
    Listing,
    Named,
    Union,
    Value,
    is_prose,
    node_of,
)
from collabsim.scorers.mathematics.brackets import split
from collabsim.scorers.reading.numbers import Either

Read = Callable[[str], Value | None]

_EQUALS = re.compile(r"\s*[=≈]\s*")
"""An equals sign: `x = 2`."""
_ROUNDED = re.compile(r"\s*≈\s*")
"""A rounding: `2/3 ≈ 0.67`."""
_COMPARES = re.compile(r"\s*([<>≤≥≠])\s*=?\s*")
"""A comparison: `x < 2`."""
_MEMBER = re.compile(r"\s*∈\s*")
"""Membership: `x ∈ [0, 1]`."""
_NAME = re.compile(
    r"(?:\\?[A-Za-zΑ-Ωα-ω]+(?:_\{?\w+\}?)?'{0,2}(?:\^\{?-1\}?)?|\([a-z](?:, ?[a-z])+\))(?: ?\([\w, ]*\))?"
    r"|[A-Za-z][A-Za-z ]{2,60}"
    r"|\\angle\s?[A-Z]+|[mP] ?\\angle ?[A-Z]+|[PE] ?[(\[][^=]*[)\]]|[A-Z]{1,2}'?"
)
"""A left side that is only a name: `f(x)`, `P(A)`."""
_COORDINATES = frozenset("xyz")


def read_relation(text: str, read: Read) -> Value | None:
    """The value of a relation; None if `text` is none, or one without a rule."""
    if len(sides := split(text, _MEMBER)) == 2:
        return read(sides[1])
    if _COMPARES.search(text):
        return _inequality(text, read)
    if len(halves := split(text, _ROUNDED)) == 2 and (both := _rounded(halves[0], halves[1], read)):
        return both
    sides = [side for side in split(text, _EQUALS) if side]
    return _equation(sides, read) if _EQUALS.search(text) and sides else None


def _rounded(exact: str, rounding: str, read: Read) -> Either | None:
    """An exact value with its rounding; None where the left side is only a name."""
    if not exact or _NAME.fullmatch(exact):
        return None
    values = [value for value in (read(exact), read(rounding)) if value is not None and not is_prose(value)]
    return Either(tuple(values)) if len(values) == 2 else None


def _equation(sides: list[str], read: Read) -> Value | None:
    """A chain says its last side: `p + q = 41 + 18 = 59` is 59."""
    value = read(sides[-1])
    if len(sides) == 1 or value is None:
        return value
    if _NAME.fullmatch(sides[0]):
        return Named(sides[0].replace(" ", ""), value)
    first = read(sides[0])
    if len(sides) == 2 and _NAME.fullmatch(sides[1]) and first is not None and not is_prose(first):
        return Named(sides[1], first)
    left, right = (None if first is None else node_of(first)), node_of(value)
    if left is None or right is None:
        return Named(sides[0].replace(" ", ""), value) if right is not None and len(sides) > 2 else None
    unknown, rest = nodes.symbols_of(left), nodes.symbols_of(right)
    if not unknown:
        return value
    if len(sides) == 2 and (rest or (len(unknown) > 1 and unknown <= _COORDINATES)):
        return Equation(left, right)
    return Named(sides[0].replace(" ", ""), value)


def _inequality(text: str, read: Read) -> Value | None:
    signs = [match[1] + "=" * ("=" in match[0]) for match in _COMPARES.finditer(text)]
    signs = [{"<=": "≤", ">=": "≥"}.get(sign, sign) for sign in signs]
    sides = split(text, _COMPARES)
    if len(sides) != len(signs) + 1 or not all(sides) or len(signs) > 2:
        return None
    values = [read(side) for side in sides]
    if len(signs) == 2:
        return _between(values, signs)
    left, right = values
    if _is_variable(right) and not _is_variable(left):
        left, right, signs = right, left, [_MIRRORED[signs[0]]]
    if signs == ["≠"] and isinstance(right, Listing) and _is_variable(left):
        return _all_but(right)
    return _half_line(signs[0], right) if _is_variable(left) and _is_bound(right) else None


_MIRRORED = {"<": ">", ">": "<", "≤": "≥", "≥": "≤", "≠": "≠"}


def _is_variable(value: Value | None) -> bool:
    return isinstance(value, Expression) and value.node[0] == "symbol"


def _is_bound(value: Value | None) -> bool:
    return isinstance(value, Fraction) or (isinstance(value, Expression) and not nodes.symbols_of(value.node))


def _all_but(points: Listing) -> Value | None:
    """All real numbers without some rational ones."""
    inner = sorted({point for point in points.items if isinstance(point, Fraction)})
    if not inner or not all(isinstance(point, Fraction) for point in points.items):
        return None
    ends: list[Value] = [NEGATIVE_INFINITY, *inner, POSITIVE_INFINITY]
    return Union(tuple(Interval(low, high, False, False) for low, high in pairwise(ends)))


def _half_line(sign: str, bound: Value | None) -> Value | None:
    if bound is None:
        return None
    below = Interval(NEGATIVE_INFINITY, bound, False, sign == "≤")
    above = Interval(bound, POSITIVE_INFINITY, sign == "≥", False)
    if sign == "≠":
        return Union((below, above))
    return below if sign in "<≤" else above


def _between(values: list[Value | None], signs: list[str]) -> Value | None:
    low, middle, high = values
    if all(sign in ">≥" for sign in signs):
        low, high, signs = high, low, [_MIRRORED[sign] for sign in reversed(signs)]
    if not all(sign in "<≤" for sign in signs) or not _is_variable(middle):
        return None
    if low is None or high is None or not (_is_bound(low) and _is_bound(high)):
        return None
    return Interval(low, high, signs[0] == "≤", signs[1] == "≤")
