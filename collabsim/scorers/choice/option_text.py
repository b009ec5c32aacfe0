r"""Texts of options, and replies that name them, in one plain form.

In: text as a model or a data set wrote it. Out: the same text without LaTeX commands, with symbols spelt one way
(`\frac{1}{2}` is `1/2`, `β` and `\beta` are `beta`, `°` is `degrees`), so that an option can be found in a reply by its
words. Left out on purpose: the value of expressions; two options are told apart by their spelling or as plain numbers.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from collabsim.scorers.reading.text import plain_characters, squeezed, without_latex_text, without_markup

MOST_NESTED = 4
"""Levels of fractions and roots that are written out."""

_FRACTION = re.compile(r"\\[dtc]?frac\s*(?:\{([^{}]*)\}\s*\{([^{}]*)\}|([0-9])\s*([0-9]))")
r"""A fraction: `\frac{1}{2}`."""
_ROOT = re.compile(r"\\sqrt\s*\{([^{}]*)\}")
r"""A root: `\sqrt{2}`."""
_DEGREES = re.compile(r"\^\s*\{?\s*\\circ\s*\}?|\\degree\b")
r"""Degrees: `90^\circ`."""
_ESCAPED_BREAK = re.compile(r"\\n(?![a-z])")
r"""A line break that was escaped twice: `A\n`."""
_LAYOUT = re.compile(r"\\(?:left|right|displaystyle|textstyle|[bB]igg?[lr]?|limits|quad|qquad)(?![A-Za-z])|\\[,;:! ]|~")
r"""Layout without meaning: `\left`."""
_ESCAPED = re.compile(r"\\([%$#&_{}])")
r"""An escaped sign: `\%`."""
_SUBSCRIPT = re.compile(r"(?<=[A-Za-z0-9)\]])\s*_\s*(?:\{([^{}]*)\}|([0-9]))")
"""An index: `H_2`."""
_SUPERSCRIPT = re.compile(r"\^\s*\{([^{}]*)\}")
"""A power in braces: `x^{10}`."""
_COMMAND = re.compile(r"\\(?!boxed|fbox|framebox)([A-Za-z]+)")
r"""A command by name: `\alpha`."""
_COMMANDS = {"times": "*", "cdot": "*", "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "ne": "≠", "neq": "≠", "pm": "±"}
_COMMANDS |= {"infty": "∞", "to": "→", "rightarrow": "→", "Rightarrow": "⇒", "implies": "⇒", "approx": "≈", "div": "/"}
_BACKSLASH = re.compile(r"\\(?!boxed|fbox|framebox)")
r"""A backslash that is left over: `\ C`."""
_BLANKS = re.compile(r"[^\S\n]+")
"""Blanks in a line: `a  b`."""
_BLANK_LINES = re.compile(r" ?\n\s*\n ?")
"""Empty lines: `a\n \nb`."""
_LATEX_MARKS = re.compile(r"[\\$_^~]")
"""A sign that a text may hold LaTeX: `$x$`."""

_SYMBOLS = dict.fromkeys(map(ord, "«»“”„‟‹›「」『』〝〞＂"), '"')
_SYMBOLS |= dict.fromkeys(map(ord, "×·⋅∙∗"), "*") | dict(zip(map(ord, "【】〔〕〖〗"), "[][][]", strict=True))
_SYMBOLS |= {ord("÷"): "/", ord("°"): " degrees", ord("℃"): " degrees C", ord("、"): ", ", ord("。"): ". "}
_SYMBOLS |= dict.fromkeys(map(ord, "✓✔✅☑"), "✓") | dict.fromkeys(map(ord, "✗✘❌✖☒"), "✗")
_SYMBOLS |= {ord("\ufe0f"): "", ord("‚"): ",", ord("‘"): "'", ord("’"): "'", ord("…"): "..."}
_GREEK = re.compile(r"(?<![\u0370-\u03ff])[\u0391-\u03a9\u03b1-\u03c9](?![\u0370-\u03ff])")
"""A Greek letter alone, not a word of Greek: `β-carotene`."""
_CYRILLIC = re.compile(r"(?<!\w)[АВСЕНКМОРТХ](?!\w)(?!\s+[а-яё])")
"""A Cyrillic letter that looks like a Latin one: `С`."""
_LOOKS_LATIN = str.maketrans("АВСЕНКМОРТХ", "ABCEHKMOPTX")

_PERCENT = re.compile(r"\s*(?:%|\bper\s?cent\b)")
"""Percent, spelt out or not: `5 per cent`."""
_GROUPED = re.compile(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))")
"""A comma between digit triples: `1,200`."""
_ARTICLE = re.compile(r"(?:the|an?)\s+(?!(?:and|or)\b|[&,])(?=\S)", re.IGNORECASE)
"""An article before a word: `the sun`."""
_OUTER = {'"': '"', "'": "'", "(": ")", "[": "]", "{": "}"}
_TOKEN = re.compile(r"\d+|[^\W\d]+|[^\w\s]")
"""A run of digits or letters, or a mark: `12`, `ab`, `+`."""


def plain_text(text: str) -> str:
    """A readable text (see `text.readable`) without LaTeX, its symbols spelt one way, its blanks single; boxes stay."""
    if _LATEX_MARKS.search(text):
        text = _without_latex(text)
    if not text.isascii():
        text = _without_symbols(text)
    return _BLANK_LINES.sub("\n\n", _BLANKS.sub(" ", text)).strip()


def _without_latex(text: str) -> str:
    text = _ESCAPED_BREAK.sub("\n", text)
    text = _LAYOUT.sub(" ", _DEGREES.sub(" degrees", text))
    text = without_latex_text(text)
    for _ in range(MOST_NESTED):
        before = text
        text = _FRACTION.sub(lambda match: f"{match[1] or match[3]}/{match[2] or match[4]}", text)
        text = _ROOT.sub(r"sqrt(\1)", text)
        if text == before:
            break
    text = _SUBSCRIPT.sub(lambda match: match[1] or match[2] or "", text)
    text = _SUPERSCRIPT.sub(r"^\1", _ESCAPED.sub(r"\1", text))
    text = _COMMAND.sub(lambda match: _COMMANDS.get(match[1], match[1]) + " ", text)
    return _BACKSLASH.sub(" ", text).replace("$", " ")


def _without_symbols(text: str) -> str:
    text = "".join(map(_spelt, text.translate(_SYMBOLS)))
    text = _GREEK.sub(lambda match: unicodedata.name(match[0]).split()[-1].lower(), text)
    return _CYRILLIC.sub(lambda match: match[0].translate(_LOOKS_LATIN), text)


@lru_cache(maxsize=4096)
def _spelt(character: str) -> str:
    """The ASCII letter or digit that a styled, circled or lowered one stands for; other characters as they are."""
    if character.isascii():
        return character
    spelt = unicodedata.normalize("NFKC", character)
    return spelt if spelt.isascii() and spelt.strip("()").isalnum() and len(spelt.strip("()")) == 1 else character


def option_words(text: str) -> str:
    """An option's text in plain form, lower case, without its leading article, outer quotes and final marks."""
    text = squeezed(plain_text(plain_characters(without_markup(text)))).casefold()
    text = _GROUPED.sub("", _PERCENT.sub("%", text))
    while True:
        shorter = text.rstrip(".,;:!").rstrip() or text
        inner = shorter[1:-1]
        if (
            len(shorter) > 2
            and "," not in inner
            and _OUTER.get(shorter[0]) == shorter[-1]
            and not set(shorter[0] + shorter[-1]) & set(inner)
        ):
            shorter = inner.strip() or shorter
        if shorter == text:
            return _ARTICLE.sub("", text, count=1) if _ARTICLE.match(text) else text
        text = shorter


def option_key(text: str) -> str:
    """What is equal for two spellings of one option: its words without the blanks."""
    return option_words(text).replace(" ", "")


def option_pattern(words: str) -> str:
    """A regular expression (ignoring case) that finds an option's words in plain text, however they are spaced."""
    tokens = _TOKEN.findall(words)
    parts = []
    for token, following in zip(tokens, [*tokens[1:], ""], strict=True):
        parts.append({"%": r"(?:%|per\s?cent)", "degrees": "(?:degrees?|deg)"}.get(token, re.escape(token)))
        blank = token[-1].isalnum() and following[:1].isalnum() and not (token.isdigit() ^ following.isdigit())
        parts.append("" if not following else r"\s+" if blank else r"\s*")
    start = r"(?<![\w./-])" if words[:1].isdigit() else r"(?<!\w)" if words[:1].isalnum() else ""
    end = r"(?![\w/^%]|[.,]\d)" if words[-1:].isdigit() else r"(?!\w|[+#]\s|[+#]\Z)" if words[-1:].isalnum() else ""
    return start + "".join(parts) + end
