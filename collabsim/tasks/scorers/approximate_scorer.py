r"""Rounded numbers, and lists of them, as answers.

In: a reply, and golds that are decimals as somebody rounded them. Out: what the reply commits to, as mathematics reads it
(`1/3`, `e^{-1}`, `[0.5, 0.25]`), right when it is within 1% of the gold or one of the two is the other one rounded. Lists are
compared place by place. Left out on purpose: how a reply is read, which is `expression_scorer.py`'s; and golds that are
exact, which want `number` or `expression`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from collabsim.tasks.item import Answer, ItemView
from collabsim.tasks.scorers.expression_scorer import ExpressionScorer
from collabsim.tasks.scorers.math_nodes import Node
from collabsim.tasks.scorers.math_values import Expression, Interval, Listing, Named, Reading, Several, Value
from collabsim.tasks.scorers.quantities import Quantity

TOLERANCE = Fraction(1, 100)
"""Relative difference up to which two numbers are the same: golds of three digits are off by up to half of it."""

FEWEST_DIGITS = 2
"""Digits that a decimal must have for another number to be rounded to it; zeros at its end do not count."""

_CONSTANTS = {"pi": math.pi, "e": math.e}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "exp": math.exp,
    "ln": math.log,
    "sqrt": math.sqrt,
    "abs": abs,
}


class ApproximateScorer(ExpressionScorer):
    """Scores answers that are a rounded number or a list of such; the canonical value is a `Reading`."""

    kind = "approximate"

    def same(self, a: Answer, b: Answer, view: ItemView) -> bool:  # noqa: ARG002
        """Whether two answers agree to within the tolerance or by rounding, place by place, or are one notation."""
        one, other = _reading(a), _reading(b)
        if one.plain == other.plain or one.value == other.value:
            return True
        first, second = _numbers(one.value), _numbers(other.value)
        return bool(first) and len(first) == len(second) and all(map(_close, first, second))


def _reading(answer: Answer) -> Reading:
    assert isinstance(answer.value, Reading)
    return answer.value


def _numbers(value: Value) -> list[Fraction]:
    """The numbers of an answer in order; empty when any part of it is none."""
    if isinstance(value, Named):
        return _numbers(value.value)
    if isinstance(value, Several):
        return _numbers(value.every)
    if isinstance(value, Listing | Interval):
        parts = value.items if isinstance(value, Listing) else (value.low, value.high)
        inner = [_numbers(part) for part in parts]
        return [numbers[0] for numbers in inner] if all(len(numbers) == 1 for numbers in inner) else []
    number = _number(value)
    return [] if number is None else [number]


def _number(value: Value) -> Fraction | None:
    if isinstance(value, Fraction):
        return value
    if isinstance(value, Quantity):
        return value.size * value.factor if value.dimension == "scale" else value.size
    if not isinstance(value, Expression):
        return None
    try:
        found = _evaluated(value.node)
    except (ArithmeticError, ValueError, TypeError, KeyError):
        return None  # a variable, a function that is not known here, no real number, or one beyond floats
    return Fraction(found) if math.isfinite(found) else None


def _evaluated(node: Node) -> float:
    """The value of an expression without variables. Raises what arithmetic raises, and `KeyError` for other names."""
    head, parts = node[0], node[1:]
    if head == "number":
        return float(parts[0] / parts[1])
    if head == "constant":
        return _CONSTANTS[parts[0]]
    if head == "call":
        return _FUNCTIONS[parts[0]](*map(_evaluated, parts[1:]))
    values = [_evaluated(part) for part in parts]
    return _OPERATIONS[head](values)


def _power(values: list[float]) -> float:
    result: Any = values[0] ** values[1]
    return math.nan if isinstance(result, complex) else float(result)


def _root(values: list[float]) -> float:
    return math.copysign(abs(values[0]) ** (1 / values[1]), values[0])


_OPERATIONS: dict[str, Callable[[list[float]], float]] = {
    "add": math.fsum,
    "multiply": math.prod,
    "power": _power,
    "root": _root,
}


def _close(a: Fraction, b: Fraction) -> bool:
    return abs(a - b) <= TOLERANCE * max(abs(a), abs(b)) or _rounds_to(a, b) or _rounds_to(b, a)


def _rounds_to(value: Fraction, decimal: Fraction) -> bool:
    """Whether `value` at the precision of `decimal` is `decimal`."""
    places = _places(decimal)
    if not places or len(str(abs(decimal.numerator * 10**places // decimal.denominator))) < FEWEST_DIGITS:
        return False
    return abs(value - decimal) <= Fraction(1, 2 * 10**places)


def _places(number: Fraction) -> int | None:
    """Digits after the point of a decimal; None for a fraction that is none."""
    twos = fives = 0
    rest = number.denominator
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    return max(twos, fives) if rest == 1 else None
