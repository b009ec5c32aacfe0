"""The worker that decides whether two expressions are equal: a process that reads requests and writes verdicts.

In: JSON lines on standard input, each with two trees or two notations. Out: one line each, `same`, `different` or
`undecided`, the last when a limit of processor time or memory is met. Trees are compared by identity testing: both are
worked out to 50 digits at fixed points, real ones where both are real there; agreement at all of them is equality
(Schwartz 1980 and Zippel 1979 for rational functions, ample in practice for elementary ones). Where no point serves, sympy
simplifies the difference. Left out on purpose: exact rational numbers, which never come here.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

CPU_SECONDS = 0.6
"""Of one request. The kernel's own limit counts whole seconds, and ends the process within two."""

MEMORY_BYTES = 3 << 29
DIGITS = 50
_TOLERANCE = Fraction(1, 10**25)
_POINTS = 8
_NEEDED = 3

LARGEST_EXPONENT_BITS, LARGEST_FACTORIAL_BITS = 64, 20

Node: TypeAlias = Sequence[Any]


class OverLimit(BaseException):
    """The time of a request is used up; no `Exception`, so that no library takes it for one of its own."""


def serve() -> None:
    """Answer requests until standard input ends."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints is not a verdict
    signal.signal(signal.SIGPROF, _over_limit)
    for line in sys.stdin:
        channel.write(json.dumps(answer(json.loads(line))) + "\n")
        channel.flush()


def _over_limit(signum: int, frame: object) -> None:  # noqa: ARG001
    raise OverLimit


def answer(request: dict[str, Any]) -> dict[str, str]:
    """The verdict on one request, or the error that kept it from being decided."""
    try:
        decide = _prepared(request)
    except ImportError as error:
        return {"error": f"{error}"}
    try:
        with _limits():
            return {"verdict": decide()}
    except (OverLimit, MemoryError, RecursionError):
        return {"verdict": "undecided"}
    except Exception as error:  # a library's own failure on an odd expression is no fault of the machine
        return {"verdict": "undecided", "why": type(error).__name__}


def _prepared(request: dict[str, Any]) -> Callable[[], str]:
    """The decision to be made, with everything imported, which is not the request's own time."""
    if "first" in request:
        _warm_up()
        return lambda: _verdict_of_notations(request["first"], request["second"])
    import mpmath  # noqa: F401

    if "value" in request:
        tree = _tree(request["value"])
        return lambda: _decimal(tree)
    a, b = _tree(request["a"]), _tree(request["b"])
    return lambda: verdict_of_trees(a, b, up_to_factor=request["up_to_factor"])


@cache
def _warm_up() -> None:
    """Load Math-Verify and build its parser, a second's work that is no request's own."""
    _verdict_of_notations("\\sqrt{x}", "x^2")


@contextmanager
def _limits() -> Iterator[None]:
    """Processor time: a signal first, and, for what does not listen to it, the end of the process a second later."""
    import resource

    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    resource.setrlimit(resource.RLIMIT_CPU, (int(used + CPU_SECONDS) + 1, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        for limit in (resource.RLIMIT_CPU, resource.RLIMIT_AS):
            resource.setrlimit(limit, (resource.getrlimit(limit)[1],) * 2)


def _tree(node: Any) -> Node:
    if node[0] == "number":
        return ("number", int(node[1], 16), int(node[2], 16))
    return tuple(_tree(part) if isinstance(part, list) else part for part in node)


def _names(node: Node) -> set[str]:
    if node[0] in ("symbol", "constant"):
        return {f"{node[0]} {node[1]}"}
    return set().union(*(_names(part) for part in node[1:] if isinstance(part, tuple)))


def verdict_of_trees(a: Node, b: Node, *, up_to_factor: bool = False) -> str:
    """Whether two trees are equal, by their values at fixed points; by sympy where no point serves."""
    from mpmath import mp

    mp.dps = DIGITS  # of the points, too
    names = _names(a) | _names(b)
    symbols = sorted(name.removeprefix("symbol ") for name in names if name.startswith("symbol "))
    if "constant infinity" in names:
        return "different"
    needed = _NEEDED if symbols or up_to_factor else 1
    for real in (True, False) if "constant i" not in names else (False,):
        pairs = [pair for k in range(_POINTS if symbols else 1) if (pair := _values(a, b, _point(symbols, k), real))]
        if up_to_factor and not symbols:
            return "same" if pairs and all(abs(value) > 0 for value in pairs[0]) else "different"
        if len(pairs) >= needed:
            return "same" if (_proportional(pairs) if up_to_factor else all(map(_agree, pairs))) else "different"
    return _verdict_of_sympy(a, b) if not up_to_factor else "undecided"


_STEPS = (0.2718281828, 0.5772156649, 0.6931471805, 0.3010299956, 0.1618033988, 0.4142135623)


def _point(symbols: Sequence[str], k: int) -> dict[str, Any]:
    """Fixed values for the variables, no two alike: all positive at even places, of either sign at odd ones."""
    from mpmath import mpf

    values = {}
    for place, name in enumerate(symbols):
        size = mpf(3 + 7 * k + 11 * place + 2 * ((k * place) % 5)) * mpf(_STEPS[place % len(_STEPS)]) / 13 + mpf(1) / 7
        values[name] = -size if k % 2 and (k // 2 + place) % 2 == 0 else size
    return values


def _values(a: Node, b: Node, point: dict[str, Any], real: bool) -> tuple[Any, Any] | None:
    """Both values at a point; None where one is not defined, or not real although it should be."""
    values = [_value(node, point, real) for node in (a, b)]
    return None if values[0] is None or values[1] is None else (values[0], values[1])


def _value(node: Node, point: dict[str, Any], real: bool) -> Any:
    """The value of a tree at a point. A small one may be what rounding left of 0: it counts once more digits confirm it."""
    from mpmath import isfinite, mp

    before = None
    for digits in (DIGITS, 4 * DIGITS, 16 * DIGITS):
        mp.dps = digits
        try:
            value = mp.mpmathify(_worked_out(node, point))
        except (ArithmeticError, ValueError, TypeError):
            return None
        if not isfinite(value) or (real and abs(mp.im(value)) > abs(value) * mp.mpf(10) ** (-DIGITS // 2)):
            return None
        if abs(value) > mp.mpf(10) ** (-DIGITS // 2) or (before is not None and _agree((before, value))):
            return value
        before = value
    return mp.mpf(0)


def _decimal(node: Node) -> str:
    from mpmath import mp

    value = None if any(not name.startswith("constant") for name in _names(node)) else _value(node, {}, True)
    return "undecided" if value is None else str(mp.nstr(mp.re(value), 20))


def _agree(pair: tuple[Any, Any]) -> bool:
    return bool(abs(pair[0] - pair[1]) <= max(abs(pair[0]), abs(pair[1])) * float(_TOLERANCE))


def _proportional(pairs: Sequence[tuple[Any, Any]]) -> bool:
    """Whether the two values stand in one ratio at all points."""
    if any((a == 0) != (b == 0) for a, b in pairs):
        return False
    ratios = [a / b for a, b in pairs if b != 0]
    return bool(ratios) and all(_agree((ratios[0], ratio)) for ratio in ratios)


def _worked_out(node: Node, point: dict[str, Any]) -> Any:
    """The value of a tree at a point, in mpmath's precision. Raises for what is not defined there."""
    from mpmath import mp

    kind = node[0]
    if kind == "number":
        return mp.mpf(node[1]) / mp.mpf(node[2])
    if kind == "symbol":
        return point[node[1]]
    if kind == "constant":
        return {"pi": mp.pi, "e": mp.e, "i": mp.j}[node[1]] * 1
    parts = [_worked_out(part, point) for part in node[1:] if isinstance(part, tuple)]
    if kind == "add":
        return mp.fsum(parts)
    if kind == "multiply":
        return mp.fprod(parts)
    if kind == "power":
        return _raised(*parts)
    if kind == "root":
        return _real_root(*parts)
    return _called(node[1], parts)


def _raised(base: Any, exponent: Any) -> Any:
    from mpmath import mp

    if mp.mag(exponent) > LARGEST_EXPONENT_BITS:
        raise OverLimit
    whole = mp.isint(exponent)
    return base ** (int(exponent) if whole else exponent)


def _real_root(value: Any, degree: Any) -> Any:
    from mpmath import mp

    if mp.im(value) == 0 and mp.re(value) < 0 and int(degree) % 2:
        return -mp.root(-mp.re(value), int(degree))
    return mp.root(value, int(degree))


def _called(name: str, parts: Sequence[Any]) -> Any:
    from mpmath import mp

    if name in ("factorial", "binomial") and any(mp.mag(part) > LARGEST_FACTORIAL_BITS for part in parts):
        raise OverLimit
    names = {"ln": "ln", "log": "ln", "abs": "fabs", "ceiling": "ceil", **{f"a{kind}": f"a{kind}" for kind in _ROUND}}
    return getattr(mp, names.get(name, name))(*parts)


_ROUND = ("sin", "cos", "tan", "sec", "csc", "cot")


def _verdict_of_sympy(a: Node, b: Node) -> str:
    import sympy

    names = sorted(name.removeprefix("symbol ") for name in _names(a) | _names(b) if name.startswith("symbol "))
    symbols = {name: sympy.Symbol(f"v{place}", real=True) for place, name in enumerate(names)}
    difference = sympy.simplify(_as_sympy(a, symbols) - _as_sympy(b, symbols))
    return "same" if difference == 0 else "undecided"


def _as_sympy(node: Node, symbols: dict[str, Any]) -> Any:
    import sympy

    if node[0] == "number":
        return sympy.Rational(node[1], node[2])
    if node[0] == "symbol":
        return symbols[node[1]]
    if node[0] == "constant":
        return {"pi": sympy.pi, "e": sympy.E, "i": sympy.I, "infinity": sympy.oo}[node[1]]
    parts = [_as_sympy(part, symbols) for part in node[1:] if isinstance(part, tuple)]
    builders = {"add": sympy.Add, "multiply": sympy.Mul, "power": sympy.Pow, "root": sympy.real_root}
    names = {"ln": "log", "abs": "Abs"}
    if node[0] in builders:
        return builders[node[0]](*parts)
    return getattr(sympy, names.get(node[1], str(node[1])))(*parts)


def _verdict_of_notations(first: str, second: str) -> str:
    from math_verify import parse, verify

    read = [parse(f"${text.replace('$', '')}$", parsing_timeout=None) for text in (first, second)]
    if not all(read):
        return "different"
    for gold, answer in (read, read[::-1]):
        if verify(gold, answer, float_rounding=20, numeric_precision=30, timeout_seconds=None):
            return "same"
    return "different"
