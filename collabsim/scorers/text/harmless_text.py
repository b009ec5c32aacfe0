"""Tells text of a model that a third party's verifier may evaluate from text that must not reach it.

Some reasoning-gym verifiers call `eval` or sympy's `parse_expr` (which evaluates too) on the answer. In: an answer and
what its verifier does. Out: True when the text can do nothing but be a value: no calls beyond known functions, no
attributes, no powers that take for ever. Left out on purpose: running anything; that is the sandbox's work.
"""

from __future__ import annotations

import ast
import re
from typing import Literal

from collabsim.scorers.reading.python_syntax import syntax_tree

Evaluator = Literal["none", "python", "sympy"]
"""What a verifier evaluates an answer with: nothing, Python's `eval`, or sympy's parser."""

LONGEST = 10_000
LONGEST_EXPRESSION = 400
MOST_NODES = 120
MOST_BITS = 4_096
"""Size to which a number in an answer may grow when its powers and products are worked out."""

_TRIGONOMETRIC = ("sin", "cos", "tan", "sec", "csc", "cot", "asin", "acos", "atan", "sinh", "cosh", "tanh")
FUNCTIONS = frozenset((*_TRIGONOMETRIC, "exp", "log", "ln", "sqrt", "Abs"))
"""Functions of integrals."""

_NOT_FINITE = re.compile(r"(?<![A-Za-z])[-+]?(?:nan|inf|infinity)(?![A-Za-z])", re.IGNORECASE)
"""A number that Python reads as no number: `-inf`."""
_HUGE_EXPONENT = re.compile(r"[0-9.][eE][-+]?[0-9]{4,}")
"""A power of ten that takes for ever to write out: `1e9999`."""


def is_harmless(answer: str, evaluator: Evaluator) -> bool:
    """Whether `answer` is safe to hand on. Numbers that are not finite, or of absurd size, never are."""
    if len(answer) > LONGEST or _NOT_FINITE.search(answer) or _HUGE_EXPONENT.search(answer):
        return False
    if evaluator == "none":
        return True
    tree = _parsed(answer)
    if evaluator == "python":
        return tree is None or _is_literal(tree)
    return tree is not None and len(answer) <= LONGEST_EXPRESSION and _is_arithmetic(tree)


def _parsed(answer: str) -> ast.expr | None:
    """The answer as a Python expression; None when Python could not evaluate it."""
    try:
        return syntax_tree(answer.strip(), "eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _is_literal(tree: ast.expr) -> bool:
    allowed = (ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.UnaryOp, ast.USub, ast.UAdd, ast.Load)
    return all(isinstance(node, allowed) for node in ast.walk(tree))


def _is_arithmetic(tree: ast.expr) -> bool:
    if sum(1 for _ in ast.walk(tree)) > MOST_NODES:
        return False
    bits = _bits(tree)
    return bits is not None and bits <= MOST_BITS


def _bits(node: ast.expr) -> float | None:
    """An upper bound of the size of the expression's value in bits; None for anything but arithmetic."""
    if isinstance(node, ast.Constant):
        number = isinstance(node.value, int | float) and not isinstance(node.value, bool)
        return _bits_of_number(node.value) if number else None  # type: ignore[arg-type]
    if isinstance(node, ast.Name):
        return 8.0 if len(node.id) == 1 else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        return _bits(node.operand)
    if isinstance(node, ast.Call):
        known = isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS
        return _bits(node.args[0]) if known and len(node.args) == 1 and not node.keywords else None
    return _bits_of_operation(node) if isinstance(node, ast.BinOp) else None


def _bits_of_number(value: int | float) -> float:
    return max(1.0, float(value.bit_length() if isinstance(value, int) else len(repr(value)) * 4))


def _bits_of_operation(node: ast.BinOp) -> float | None:
    left, right = _bits(node.left), _bits(node.right)
    if left is None or right is None:
        return None
    if isinstance(node.op, ast.Add | ast.Sub):
        return max(left, right) + 1
    if isinstance(node.op, ast.Mult | ast.Div):
        return left + right
    return left * _size(node.right) if isinstance(node.op, ast.Pow) else None


def _size(exponent: ast.expr) -> float:
    """The largest absolute value a numeric exponent can have; 1 when it holds a symbol and so is never worked out."""
    if any(isinstance(node, ast.Name) for node in ast.walk(exponent)):
        return 1.0
    numbers = [abs(float(node.value)) for node in ast.walk(exponent) if isinstance(node, ast.Constant)]  # type: ignore[arg-type]
    if any(isinstance(node, ast.Pow) for node in ast.walk(exponent)):
        return float("inf")
    size = 1.0
    for number in numbers:
        size *= max(1.0, number)
    return size * len(numbers)
