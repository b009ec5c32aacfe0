r"""The words of expressions: tokens, and the names that mean something.

In: plain mathematics (see `latex.py`). Out: its numbers, names and marks, each with whether white space stands before it;
tables of functions, constants and Greek letters. Left out on purpose: how they combine; see `parser.py`.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class UnreadableExpression(ValueError):
    """A text that is no expression of the grammar."""


class Token(NamedTuple):
    """A piece of an expression."""

    kind: str
    """number, command, word, mark, or end."""
    text: str
    spaced: bool
    """Whether white space stands before it."""


_TOKEN = re.compile(
    r"(?P<space>\s*)(?:(?P<number>(?:[1-9][0-9]{0,2}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+)"
    r"(?P<e>[eE][-+]?[0-9]{1,4}(?![0-9.^]))?|(?P<command>\\[A-Za-z]+)|(?P<word>[A-Za-z]+|[Α-Ωα-ω])|(?P<mark>\S))"
)
r"""A number, a command, a word or a mark: `2.5`, `\sqrt`, `xy`, `+`."""
TRIGONOMETRIC = ("sin", "cos", "tan", "sec", "csc", "cot")
_INVERSE = {
    **{f"arc{name}": f"a{name}" for name in TRIGONOMETRIC},
    **{f"a{name}": f"a{name}" for name in TRIGONOMETRIC},
}
_HYPERBOLIC = ("sinh", "cosh", "tanh")
_NAMED = {**dict.fromkeys(("ln", "log", "exp")), **dict.fromkeys((*TRIGONOMETRIC, *_HYPERBOLIC))}
FUNCTIONS = {**{name: name for name in _NAMED}, **_INVERSE, "cosec": "csc"}
CONSTANTS = {"pi": "pi", "π": "pi", "infinity": "infinity", "inf": "infinity", "oo": "infinity", "∞": "infinity"}
LETTER_CONSTANTS = {"e": "e", "i": "i"}
WORD_LIKE = re.compile(r"[eou]|\A(?:is|it|if|in|my|by|i|hi|no)\Z", re.IGNORECASE)
"""Letters that are a word rather than a product of variables: `or`."""
GREEK = frozenset(
    [
        "alpha",
        "beta",
        "gamma",
        "delta",
        "epsilon",
        "varepsilon",
        "zeta",
        "eta",
        "theta",
        "vartheta",
        "iota",
        "kappa",
        "lambda",
        "mu",
        "nu",
        "xi",
        "rho",
        "sigma",
        "tau",
        "upsilon",
        "phi",
        "varphi",
        "chi",
        "psi",
        "omega",
        "Gamma",
        "Delta",
        "Theta",
        "Lambda",
        "Xi",
        "Sigma",
        "Phi",
        "Psi",
        "Omega",
        "ell",
        "hbar",
    ]
)
CALLED = {"abs": "abs", "floor": "floor", "ceil": "ceiling", "factorial": "factorial"}
CLOSING = {"(": ")", "[": "]", "{": "}", "⌊": "⌋", "⌈": "⌉"}
STARTS = frozenset("([{|√⌊⌈∞π")


def tokens(text: str) -> list[Token]:
    """The tokens of an expression, with one of kind `end` behind them."""
    pieces = []
    for match in _TOKEN.finditer(text):
        kind = next(name for name in ("number", "command", "word", "mark") if match[name])
        pieces.append(Token(kind, match[kind] + (match["e"] or ""), bool(match["space"])))
    return [*pieces, Token("end", "", False)]
