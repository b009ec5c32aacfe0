r"""One expression, read into a tree.

In: plain mathematics (see `latex.py`) that is one scalar: `2\sqrt{3}`, `x^2 - 1/2`, `3!`, `2\frac{1}{4}`. Out: a node
(see `expression_tree.py`). The grammar is our own and refuses what it does not know (`UnreadableExpression`): words, lists,
relations, `1_000`, two numbers side by side. A mixed number is a sum, a slash binds as a product does (`1/2x` is x/2), `e`,
`i` and `π` are the constants. Left out on purpose: sums, integrals and limits, which go to Math-Verify as text.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from collabsim.scorers.mathematics import expression_tree as nodes
from collabsim.scorers.mathematics.expression_tree import Node
from collabsim.scorers.mathematics.tokens import (
    CALLED,
    CLOSING,
    CONSTANTS,
    FUNCTIONS,
    GREEK,
    LETTER_CONSTANTS,
    STARTS,
    TRIGONOMETRIC,
    WORD_LIKE,
    Token,
    UnreadableExpression,
    tokens,
)

MOST_NESTED = 40
MOST_DIGITS = 4_000
MOST_POWER_OF_TEN = 400


def parse(text: str) -> Node:
    """The tree of one expression. Raises `UnreadableExpression`, or `TooLarge` for a number that cannot be worked out."""
    parser = _Parser(tokens(text))
    try:
        node = parser.sum()
    except ZeroDivisionError:
        raise UnreadableExpression("division by zero") from None
    if parser.now.kind != "end":
        raise UnreadableExpression(parser.now.text)
    return node


@dataclass
class _Parser:
    tokens: list[Token]
    place: int = 0
    depth: int = 0
    bars: int = 0
    """Absolute values that are open here: a bar closes the last one."""
    in_function: bool = False

    @property
    def now(self) -> Token:
        return self.tokens[self.place]

    def take(self) -> Token:
        token = self.now
        self.place += token.kind != "end"
        return token

    def taken(self, *texts: str) -> str | None:
        """The next token's text, taken, if it is one of `texts`."""
        return self.take().text if self.now.text in texts and self.now.kind != "end" else None

    def sum(self) -> Node:
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise UnreadableExpression("nested too deeply")
        parts = [self.product()]
        while sign := self.taken("+", "-", "±", "∓"):
            parts.append(_signed(sign, self.product()))
        self.depth -= 1
        return nodes.add(*parts)

    def product(self) -> Node:
        signs = []
        while sign := self.taken("+", "-", "±", "∓"):
            signs.append(sign)
        if len(signs) > 2:
            raise UnreadableExpression("signs")
        node = self.factor()
        while True:
            if self.taken("*"):
                node = nodes.multiply(node, self.signed_factor())
            elif self.taken("/"):
                node = nodes.divide(node, self.signed_factor())
            elif self.starts_factor():
                node = nodes.multiply(node, self.factor())
            else:
                break
        for sign in reversed(signs):
            node = _signed(sign, node)
        return node

    def signed_factor(self) -> Node:
        sign = self.taken("-", "+")
        return _signed(sign or "+", self.factor())

    def starts_factor(self) -> bool:
        if self.now.kind == "number" and self.tokens[self.place - 1].text not in ("!", ")"):
            raise UnreadableExpression("two numbers side by side")
        if self.now.kind == "mark":
            return self.now.text in STARTS and not (self.now.text == "|" and self.bars)
        return self.now.kind in ("word", "command", "number")

    def factor(self) -> Node:
        node = self.atom()
        while True:
            if self.taken("^"):
                node = nodes.power(node, self.exponent())
            elif self.taken("!"):
                node = nodes.call("factorial", node)
            elif self.taken("%"):
                node = nodes.divide(node, nodes.number(100))
            elif self.taken("°"):
                turn = nodes.divide(nodes.constant("pi"), nodes.number(180))
                node = nodes.multiply(node, turn) if self.in_function else node
            else:
                return node

    def exponent(self) -> Node:
        sign = self.taken("-", "+") or "+"
        base = self.atom()
        return _signed(sign, nodes.power(base, self.exponent()) if self.taken("^") else base)

    def atom(self) -> Node:
        token = self.take()
        if token.kind == "number":
            return self.after_number(_numeral(token.text))
        if token.kind == "command":
            return self.command(token.text[1:])
        if token.kind == "word":
            return self.word(token.text)
        if token.text in CLOSING:
            return self.enclosed(token.text)
        if token.text == "|":
            return self.absolute()
        if token.text == "√":
            return nodes.root(self.atom(), nodes.number(2))
        if token.text in CONSTANTS:
            return nodes.constant(CONSTANTS[token.text])
        raise UnreadableExpression(token.text or "end")

    def enclosed(self, opening: str) -> Node:
        bars, self.bars = self.bars, 0
        node = self.sum()
        self.bars = bars
        if not self.taken(CLOSING[opening]):
            raise UnreadableExpression(f"no {CLOSING[opening]}")
        return nodes.call({"⌊": "floor", "⌈": "ceiling"}[opening], node) if opening in "⌊⌈" else node

    def absolute(self) -> Node:
        self.bars += 1
        node = self.sum()
        self.bars -= 1
        if not self.taken("|"):
            raise UnreadableExpression("no |")
        return nodes.call("abs", node)

    def after_number(self, node: Node) -> Node:
        """`2 1/2` and `2\\frac{1}{2}` are sums."""
        whole = nodes.value_of(node)
        if whole is None or whole.denominator != 1:
            return node
        start = self.place
        part = None
        if self.now.text == "\\frac":
            self.take()
            part = self.fraction()
        elif self.now.kind == "number" and self.now.spaced and self.tokens[self.place + 1].text == "/":
            over, _, under = self.take(), self.take(), self.take()
            part = nodes.divide(_numeral(over.text), _numeral(under.text)) if under.kind == "number" else None
        value = None if part is None else nodes.value_of(part)
        if (
            value is not None
            and 0 < value < 1
            and all(token.kind != "mark" or token.text in "{}/" for token in self.tokens[start : self.place])
        ):
            return nodes.add(node, nodes.number(value))
        self.place = start
        return node

    def command(self, name: str) -> Node:
        if name == "frac":
            return self.fraction()
        if name == "binom":
            return nodes.call("binomial", self.argument(), self.argument())
        if name == "sqrt":
            degree = self.enclosed("[") if self.taken("[") else nodes.number(2)
            return nodes.root(self.atom(), degree)
        if name in FUNCTIONS:
            return self.function(FUNCTIONS[name])
        if name in GREEK:
            return self.subscripted(name)
        raise UnreadableExpression(name)

    def fraction(self) -> Node:
        return nodes.divide(self.argument(), self.argument())

    def argument(self) -> Node:
        """An argument of a LaTeX command: a group, or a single character."""
        if self.now.kind in ("number", "word") and len(self.now.text) > 1:
            token = self.now
            if not token.text.isalnum():
                raise UnreadableExpression(token.text)
            self.tokens[self.place] = Token(token.kind, token.text[1:], False)
            return _numeral(token.text[0]) if token.kind == "number" else self.letters(token.text[0])
        token = self.now
        if token.kind in ("number", "word"):
            self.take()
            return _numeral(token.text) if token.kind == "number" else self.letters(token.text)
        return self.atom()

    def word(self, text: str) -> Node:
        if text in ("sqrt", "cbrt"):
            return nodes.root(self.atom(), nodes.number(2 if text == "sqrt" else 3))
        if text in CALLED and self.taken("("):
            return nodes.call(CALLED[text], self.enclosed("("))
        if text[-1] in "xyθ" and text[:-1] in FUNCTIONS:
            self.place -= 1
            self.tokens[self.place] = Token("word", text[-1], True)
            return self.function(FUNCTIONS[text[:-1]])
        if text in FUNCTIONS:
            return self.function(FUNCTIONS[text])
        if text.lower() in CONSTANTS:
            return nodes.constant(CONSTANTS[text.lower()])
        if text in GREEK:
            return self.subscripted(text)
        return self.letters(text)

    def letters(self, text: str) -> Node:
        """The first of a run of letters as a variable, the rest to come; a run that looks like a word is unreadable."""
        if len(text) > 1:
            if len(text) > 3 or WORD_LIKE.search(text):
                raise UnreadableExpression(text)
            self.place -= 1
            self.tokens[self.place] = Token("word", text[1:], False)
        return self.subscripted(text[0])

    def subscripted(self, name: str) -> Node:
        if not self.taken("_"):
            return nodes.constant(LETTER_CONSTANTS[name]) if name in LETTER_CONSTANTS else nodes.symbol(name)
        token = self.take()
        if token.text != "{":
            return nodes.symbol(f"{name}_{token.text}")
        below = []
        while self.now.kind != "end" and self.now.text != "}":
            below.append(self.take().text)
        self.take()
        return nodes.symbol(f"{name}_{''.join(below)}")

    def function(self, name: str) -> Node:
        base = self.argument() if name == "log" and self.taken("_") else None
        exponent = self.exponent() if self.taken("^") else None
        if exponent == nodes.MINUS_ONE and name in TRIGONOMETRIC:
            name, exponent = f"a{name}", None
        outside, self.in_function = self.in_function, True
        argument = self.enclosed(self.take().text) if self.now.text in ("(", "{", "[") else self.bare_argument()
        self.in_function = outside
        node = _applied(name, argument) if base is None else nodes.logarithm(base, argument)
        return node if exponent is None else nodes.power(node, exponent)

    def bare_argument(self) -> Node:
        parts = [self.factor()]
        while self.starts_factor() and self.now.text not in ("(", "[") and self.now.text.lstrip("\\") not in FUNCTIONS:
            parts.append(self.factor())
        return nodes.multiply(*parts)


def _signed(sign: str, node: Node) -> Node:
    if sign == "+":
        return node
    if sign == "-":
        return nodes.negative(node)
    return nodes.multiply(nodes.symbol(sign), node)


def _applied(name: str, argument: Node) -> Node:
    return nodes.power(nodes.constant("e"), argument) if name == "exp" else nodes.call(name, argument)


def _numeral(text: str) -> Node:
    mantissa, _, exponent = text.replace(",", "").lower().partition("e")
    if len(mantissa) > MOST_DIGITS or abs(int(exponent or 0)) > MOST_POWER_OF_TEN:
        raise nodes.TooLarge("numeral")
    return nodes.number(Fraction(mantissa) * Fraction(10) ** int(exponent or 0))
