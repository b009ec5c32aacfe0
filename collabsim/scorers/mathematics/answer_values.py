"""The values that answers of mathematics have.

A rational number is a `Fraction`, with a unit a `Quantity`; the classes here are everything else. All are hashable and know
nothing of how they were written, except where notation is all that there is (`Words`, `Opaque`, `Vast`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from collabsim.scorers.mathematics import expression_tree as nodes
from collabsim.scorers.mathematics.expression_tree import Node
from collabsim.scorers.reading.numbers import Either, Range
from collabsim.scorers.reading.quantities import Quantity


@dataclass(frozen=True, slots=True)
class Expression:
    """A scalar that is no rational number: `2√3`, `x^2 + 1`, infinity."""

    node: Node


@dataclass(frozen=True, slots=True)
class Listing:
    """Several values: `(3, 4)`, `[1, 2)`, `{2, 5}` (opening `{`), or bare, `3, 5` (opening empty)."""

    opening: str
    closing: str
    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Interval:
    """All numbers between two ends."""

    low: Value
    high: Value
    has_low: bool
    has_high: bool


@dataclass(frozen=True, slots=True)
class Union:
    """A union of intervals; of none, the empty set."""

    parts: tuple[Interval, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows of values."""

    rows: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True, slots=True)
class Equation:
    """Two sides, neither of which is just a name for the other."""

    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Named:
    """A value with its name: `x = 3`, `f(x) = x^2`, `p + q = 59`."""

    name: str
    value: Value


@dataclass(frozen=True, slots=True)
class Ratio:
    """`3:4`, `10:30 p.m.`"""

    parts: tuple[int, ...]
    half: str = ""
    """`a` or `p` for times of the day."""


@dataclass(frozen=True, slots=True)
class Based:
    """Digits in a base: `1011_2`."""

    digits: str
    base: str


@dataclass(frozen=True, slots=True)
class Words:
    """Text, without case and outer marks."""

    text: str


@dataclass(frozen=True, slots=True)
class Opaque:
    """Mathematics beyond our grammar, as plain text."""

    plain: str


@dataclass(frozen=True, slots=True)
class Vast:
    """An expression too large to be worked out: equal to its own notation only."""

    plain: str


@dataclass(frozen=True, slots=True)
class Several:
    """Boxes side by side: the last one where one value is meant, all of them where several are."""

    every: Listing
    last: Value


Value: TypeAlias = (
    Fraction
    | Quantity
    | Range
    | Expression
    | Listing
    | Interval
    | Union
    | Matrix
    | Equation
    | Named
    | Ratio
    | Based
    | Words
    | Opaque
    | Vast
    | Several
    | Either
)


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer: its value, and its notation as a key (`plain`) and as written (`source`, for Math-Verify)."""

    value: Value
    plain: str
    source: str = field(default="", compare=False)


POSITIVE_INFINITY = Expression(nodes.INFINITY)
NEGATIVE_INFINITY = Expression(nodes.negative(nodes.INFINITY))
REALS = Interval(NEGATIVE_INFINITY, POSITIVE_INFINITY, False, False)


def scalar(node: Node) -> Fraction | Expression:
    """A node as a value."""
    value = nodes.value_of(node)
    return Expression(node) if value is None else value


def node_of(value: Value) -> Node | None:
    """The tree of a scalar; None for anything else, and for quantities of a unit."""
    if isinstance(value, Expression):
        return value.node
    return nodes.number(value) if isinstance(value, Fraction) else None


def is_prose(value: Value) -> bool:
    """Whether a value is text and no mathematics."""
    return isinstance(value, Words) or (isinstance(value, Listing) and any(map(is_prose, value.items)))
