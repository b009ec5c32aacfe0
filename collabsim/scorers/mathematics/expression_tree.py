"""Expressions as trees, exact where they are rational.

In: parts of an expression. Out: nodes, nested tuples such as `("add", ("symbol", "x"), ("number", 1, 2))`, hashable and
in one order whatever order they were written in. Rational parts are worked out exactly at once, within bounds; what
exceeds them raises `TooLarge` instead of taking for ever. Left out on purpose: identities beyond order (`sin^2 + cos^2`,
expansion); see `symbolic_equality.py`.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb, factorial, isqrt
from typing import Any

Node = tuple[Any, ...]

MAX_BITS = 1 << 17
"""Size of the largest numerator or denominator that is worked out: 10,000! has 118,000 bits."""

MOST_FACTORIAL = 10_000
LARGEST_ROOT = 64
"""Highest root that is taken exactly; higher ones stay as they are."""


class TooLarge(ValueError):
    """A number too large to be worked out."""


def number(value: Fraction | int) -> Node:
    """A rational number. Raises `TooLarge` beyond `MAX_BITS`."""
    value = Fraction(value)
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise TooLarge("number")
    return ("number", value.numerator, value.denominator)


def value_of(node: Node) -> Fraction | None:
    """The rational value of a node; None if it is none."""
    return Fraction(node[1], node[2]) if node[0] == "number" else None


def symbol(name: str) -> Node:
    """A variable."""
    return ("symbol", name)


def constant(name: str) -> Node:
    """`pi`, `e`, `i` or `infinity`."""
    return ("constant", name)


ONE, ZERO, MINUS_ONE = number(1), number(0), number(-1)
INFINITY = constant("infinity")


def add(*parts: Node) -> Node:
    """A sum: flat, rational parts added up, the rest in order."""
    total, rest = Fraction(0), []
    for part in _flat("add", parts):
        value = value_of(part)
        if value is None:
            rest.append(part)
        else:
            total += value
    folded = [number(total)] if total or not rest else []
    return _ordered("add", folded + rest)


def multiply(*parts: Node) -> Node:
    """A product: flat, rational parts multiplied, the rest in order; 0 if a part is 0."""
    product, rest = Fraction(1), []
    for part in _flat("multiply", parts):
        value = value_of(part)
        if value is None:
            rest.append(part)
        else:
            product *= value
            number(product)
    if product == 0 and INFINITY not in rest:
        return ZERO
    folded = [number(product)] if product != 1 or not rest else []
    return _ordered("multiply", folded + rest)


def negative(part: Node) -> Node:
    """The negated node."""
    return multiply(MINUS_ONE, part)


def divide(over: Node, under: Node) -> Node:
    """A quotient. Raises `ZeroDivisionError` for a zero divisor."""
    return multiply(over, power(under, MINUS_ONE))


def power(base: Node, exponent: Node) -> Node:
    """A power, worked out where base, exponent and result are rational."""
    if exponent == ONE:
        return base
    value, times = value_of(base), value_of(exponent)
    if times is not None and base[0] == "power" and times.denominator == 1 and value_of(base[2]) is not None:
        return power(base[1], multiply(base[2], exponent))
    if value is None or times is None:
        return ("power", base, exponent)
    if times.denominator == 1:
        return number(_integer_power(value, times.numerator))
    rooted = root_of(value, times.denominator) if value > 0 else None
    return ("power", base, exponent) if rooted is None else number(_integer_power(rooted, times.numerator))


def root(base: Node, degree: Node) -> Node:
    """The real root of a degree; a node of its own for odd degrees, where it is not the principal power."""
    value, times = value_of(base), value_of(degree)
    if times is not None and times.denominator == 1 and 2 <= times <= LARGEST_ROOT:
        exact = root_of(value, times.numerator) if value is not None else None
        if exact is not None:
            return number(exact)
        if times.numerator % 2 and (value is None or value < 0):
            return ("root", base, degree)
    return power(base, divide(ONE, degree))


def call(name: str, *arguments: Node) -> Node:
    """A named function of its arguments; factorials, binomials and absolute values are worked out."""
    values = [value_of(argument) for argument in arguments]
    whole = [value.numerator for value in values if value is not None and value.denominator == 1]
    if name == "abs" and values[0] is not None:
        return number(abs(values[0]))
    if name in ("floor", "ceiling") and values[0] is not None:
        return number(values[0].__floor__() if name == "floor" else values[0].__ceil__())
    if len(whole) == len(arguments) and all(value >= 0 for value in whole):
        if name == "factorial":
            return number(_factorial(whole[0]))
        if name == "binomial":
            return number(_binomial(*whole))
    return ("call", name, *arguments)


def logarithm(base: Node, argument: Node) -> Node:
    """A logarithm to a base: exact where the argument is a whole power of it, else a quotient of natural ones."""
    below, above = value_of(base), value_of(argument)
    if below is not None and above is not None and below > 1 and above > 0:
        power, times = Fraction(1), 0
        while power < above and times < 4_096:
            power, times = power * below, times + 1
        if power == above:
            return number(times)
    return divide(call("ln", argument), call("ln", base))


def _integer_power(base: Fraction, times: int) -> Fraction:
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if abs(base) != 1 and base != 0 and abs(times) * max(1, bits - 1) > MAX_BITS:
        raise TooLarge("power")
    if abs(base) == 1 or base == 0:
        times = min(abs(times), 2 + times % 2) * (-1 if times < 0 else 1)
    power: Fraction = base**times
    return power


def _factorial(n: int) -> int:
    if n > MOST_FACTORIAL:
        raise TooLarge("factorial")
    return factorial(n)


def _binomial(n: int, k: int) -> int:
    if n > MOST_FACTORIAL:
        raise TooLarge("binomial")
    return comb(n, k)


def root_of(value: Fraction, degree: int) -> Fraction | None:
    """The exact real root of a rational; None if it is irrational, not real, or of too high a degree."""
    if not 2 <= degree <= LARGEST_ROOT or (value < 0 and degree % 2 == 0):
        return None
    sign = -1 if value < 0 else 1
    over, under = _integer_root(abs(value.numerator), degree), _integer_root(value.denominator, degree)
    return None if over is None or under is None else Fraction(sign * over, under)


def _integer_root(n: int, degree: int) -> int | None:
    if degree == 2:
        guess = isqrt(n)
        return guess if guess * guess == n else None
    low, high = 0, 1 << (n.bit_length() // degree + 1)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if middle**degree < n else (low, middle)
    return low if low**degree == n else None


def _flat(kind: str, parts: tuple[Node, ...]) -> list[Node]:
    return [inner for part in parts for inner in (part[1:] if part[0] == kind else (part,))]


def _ordered(kind: str, parts: list[Node]) -> Node:
    return parts[0] if len(parts) == 1 else (kind, *sorted(parts, key=order_key))


def order_key(node: Node) -> str:
    """A text by which nodes are put in order; numbers in hexadecimal, since Python prints no longer decimals."""
    parts = (order_key(p) if isinstance(p, tuple) else f"{p:x}" if isinstance(p, int) else p for p in node[1:])
    return f"{node[0]}({','.join(parts)})"


def symbols_of(node: Node) -> frozenset[str]:
    """Names of the variables in a node."""
    if node[0] == "symbol":
        return frozenset((node[1],))
    return frozenset().union(*(symbols_of(part) for part in node[1:] if isinstance(part, tuple)))
