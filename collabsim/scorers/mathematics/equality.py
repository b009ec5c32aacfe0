"""Decides whether two answers of mathematics are the same.

In: two readings. Out: yes or no, and the same for either order. Rational numbers are compared exactly; lists, intervals,
matrices and equations part by part; scalars that are not rational by `symbolic_equality.py`, in a process of its own. Sets
and bare lists have no order, pairs do. Raises `ScoringError` when that process cannot be had. Left out on purpose: notation.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from collabsim.scorers.mathematics import expression_tree as nodes
from collabsim.scorers.mathematics.answer_reader import as_interval
from collabsim.scorers.mathematics.answer_values import (
    Based,
    Equation,
    Expression,
    Interval,
    Listing,
    Matrix,
    Named,
    Opaque,
    Ratio,
    Reading,
    Several,
    Union,
    Value,
    Vast,
    Words,
    node_of,
)
from collabsim.scorers.mathematics.expression_tree import Node
from collabsim.scorers.mathematics.symbolic_equality import approximate, equal_nodes, equal_notation
from collabsim.scorers.reading.numbers import Either
from collabsim.scorers.reading.quantities import Quantity, near_size, same_size

MOST_NAMES = 4
"""Members up to which a list may be several names of one value."""


def same(a: Reading, b: Reading) -> bool:
    """Whether two answers are the same. Symmetric and reflexive. Raises `ScoringError`."""
    if a.plain == b.plain or same_values(a.value, b.value):
        return True
    if isinstance(a.value, Vast | Words) or isinstance(b.value, Vast | Words):
        return _is_letter(a, b) and a.plain.casefold() == b.plain.casefold()
    if _is_letter(a, b):
        return a.plain.strip("()").casefold() == b.plain.strip("()").casefold()
    if _holds_opaque(a.value) or _holds_opaque(b.value):
        return equal_notation(a.source, b.source)
    return False


def _is_letter(a: Reading, b: Reading) -> bool:
    return all(len(reading.plain.strip("()")) == 1 and reading.plain.strip("()").isalpha() for reading in (a, b))


def _holds_opaque(value: Value) -> bool:
    if isinstance(value, Listing):
        return any(map(_holds_opaque, value.items))
    return _holds_opaque(value.value) if isinstance(value, Named) else isinstance(value, Opaque)


def same_values(a: Value, b: Value) -> bool:
    """Whether two values are the same. Symmetric and reflexive. Raises `ScoringError`."""
    if a == b:
        return True
    for one, other in ((a, b), (b, a)):
        for kind, rule in _RULES:
            if isinstance(one, kind):
                verdict: bool | None = rule(one, other)
                if verdict is not None:
                    return verdict
    return _same_scalars(a, b)


def _several(a: Several, b: Value) -> bool | None:
    if isinstance(b, Several):
        return same_values(a.every, b.every)
    return same_values(a.every if isinstance(b, Listing) else a.last, b)


def _either(a: Either, b: Value) -> bool | None:
    if isinstance(b, Either):
        return len(a.values) == len(b.values) and all(map(same_values, a.values, b.values))
    return any(same_values(value, b) for value in a.values)


def _named(a: Named, b: Value) -> bool | None:
    """Names count only where both answers give one."""
    if isinstance(b, Equation):
        left, right = _name_node(a.name), node_of(a.value)
        return left is not None and right is not None and _same_equations(Equation(left, right), b)
    if isinstance(b, Named) and a.name.casefold() != b.name.casefold():
        return False
    return same_values(a.value, b.value if isinstance(b, Named) else b)


def _name_node(name: str) -> Node | None:
    return nodes.symbol(name) if len(name) == 1 else None


def _equation(a: Equation, b: Value) -> bool | None:
    return _same_equations(a, b) if isinstance(b, Equation) else False if not isinstance(b, Named | Several) else None


def _same_equations(a: Equation, b: Equation) -> bool:
    """Equal sides in either order, or differences of the sides that are a constant multiple of each other."""
    one, other = (nodes.add(equation.left, nodes.negative(equation.right)) for equation in (a, b))
    return equal_nodes(one, other, up_to_factor=True)


def _listing(a: Listing, b: Value) -> bool | None:
    if isinstance(b, Listing):
        return _same_lists(a, b)
    if isinstance(b, Interval | Union):
        interval = as_interval(a)
        return interval is not None and same_values(interval, b)
    if isinstance(b, Matrix):
        rows = tuple(item.items if isinstance(item, Listing) else (item,) for item in a.items)
        return same_values(Matrix(rows), b)
    if isinstance(b, Named | Several):
        return None
    if a.opening not in ("", "{"):
        return len(a.items) == 1 and same_values(a.items[0], b)
    first, *others = _distinct(a.items)
    one = len(others) < MOST_NAMES and all(same_values(first, other) for other in others)
    return one and any(same_values(item, b) for item in (first, *others))  # `3/8, or 37.5%`


def _same_lists(a: Listing, b: Listing) -> bool:
    kinds = {a.opening, b.opening}
    if kinds <= {"", "{"}:
        return _same_sets(_distinct(a.items), _distinct(b.items))
    if "" not in kinds and (a.opening, a.closing) != (b.opening, b.closing):
        longer = len(a.items) > 2 and "{" not in kinds and {a.closing, b.closing} <= {")", "]"}
        return longer and _same_sequences(a.items, b.items)
    return _same_sequences(a.items, b.items)


def _distinct(items: Sequence[Value]) -> list[Value]:
    return list(dict.fromkeys(items))


def _same_sequences(a: Sequence[Value], b: Sequence[Value]) -> bool:
    return len(a) == len(b) and all(map(_same_members, a, b))


def _same_members(a: Value, b: Value) -> bool:
    """Inside a list, a list of one is not its member."""
    return isinstance(a, Listing) == isinstance(b, Listing) and same_values(a, b)


def _same_sets(a: list[Value], b: list[Value]) -> bool:
    """Whether each value of one is in the other, by pairing them off."""
    left = list(b)
    for value in a:
        partner = next((k for k, other in enumerate(left) if _same_members(value, other)), None)
        if partner is None:
            return False
        del left[partner]
    return not left


def _interval(a: Interval, b: Value) -> bool | None:
    if isinstance(b, Union):
        return same_values(Union((a,)), b)
    if not isinstance(b, Interval):
        return None if isinstance(b, Listing | Named | Several) else False
    ends = (a.has_low, a.has_high) == (b.has_low, b.has_high)
    return ends and same_values(a.low, b.low) and same_values(a.high, b.high)


def _union(a: Union, b: Value) -> bool | None:
    return _same_sets(_distinct(a.parts), _distinct(b.parts)) if isinstance(b, Union) else None


def _matrix(a: Matrix, b: Value) -> bool | None:
    if not isinstance(b, Matrix):
        return None
    flat = [[cell for row in matrix.rows for cell in row] for matrix in (a, b)]
    lines = [min(len(matrix.rows), max(map(len, matrix.rows))) == 1 for matrix in (a, b)]
    shapes = [[len(row) for row in matrix.rows] for matrix in (a, b)]
    return (shapes[0] == shapes[1] or all(lines)) and _same_sequences(*flat)


def _based(a: Based, b: Value) -> bool | None:
    """A number without a base is taken to be written in the other's."""
    return a.digits.isdigit() and b == Fraction(int(a.digits)) if isinstance(b, Fraction) else None


def _ratio(a: Ratio, b: Value) -> bool | None:
    return a.parts == b.parts and not (a.half and b.half) if isinstance(b, Ratio) else None


_RULES: tuple[tuple[type, Any], ...] = (
    (Either, _either),
    (Several, _several),
    (Named, _named),
    (Equation, _equation),
    (Matrix, _matrix),
    (Listing, _listing),
    (Union, _union),
    (Interval, _interval),
    (Based, _based),
    (Ratio, _ratio),
)


def _same_scalars(a: Value, b: Value) -> bool:
    if isinstance(a, Fraction | Quantity) and isinstance(b, Fraction | Quantity):
        return same_size(a, b)
    one, other = node_of(a), node_of(b)
    if one is None or other is None or not isinstance(a, Expression | Fraction):
        return False
    return equal_nodes(one, other)


def near(value: Value, gold: Value, tolerance: float) -> bool:
    """Whether a number, or each of a list in its order, is within `tolerance` of the gold, in parts of the gold.

    Raises `ScoringError`.
    """
    value, gold = (side.value if isinstance(side, Named) else side for side in (value, gold))
    if isinstance(value, Listing) and isinstance(gold, Listing):
        pairs = zip(value.items, gold.items, strict=False)
        return len(value.items) == len(gold.items) and all(near(*pair, tolerance) for pair in pairs)
    sizes = [approximate(side.node) if isinstance(side, Expression) else side for side in (value, gold)]
    if not all(isinstance(size, Fraction | Quantity) for size in sizes):
        return False
    return near_size(sizes[0], sizes[1], tolerance)  # type: ignore[arg-type]
