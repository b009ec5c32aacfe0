"""The part of a reply that answers, in plain characters.

In: a reply as a model wrote it. Out: its final part (no thinking), without Markdown emphasis, with minus look-alikes,
full-width characters and foreign digits mapped to ASCII. Left out on purpose: Unicode's own compatibility
normalisation, which would turn 10² into 102.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

LONGEST = 40_000
"""Characters of a final part that are read, from its end: an answer stands there, and reading must not cost time."""

MOST_NESTED = 8
"""Levels of nested LaTeX text commands that are unwrapped."""

_TAGS = "think|thinking|thought|reasoning"
_CLOSED = re.compile(rf"</(?:{_TAGS})\s*>|\[/THINK\]", re.IGNORECASE)
"""The end of thinking: `</think>`."""
_OPENED = re.compile(rf"<(?:{_TAGS})\s*>|\[THINK\]", re.IGNORECASE)
"""The beginning of thinking: `<think>`."""

_FENCE = re.compile(r"(?m)^[ \t]*```[\w+-]*[ \t]*$\n?|```")
"""A fence, its line with it: "```latex"."""
_DOUBLE = re.compile(r"(?<![\w)])\*\*|\*\*(?![\w(])|(?<!\w)__|__(?!\w)")
"""A mark of strong emphasis: `**42**`. Not the power in `x**2`."""
_SINGLE = re.compile(r"(?<![\w*)])\*(?=\S)([^*\n]+)(?<=\S)\*(?![\w*(])|(?<!\w)_(?=\S)([^_\n]+)(?<=\S)_(?!\w)")
"""Words in emphasis: `*Paris*`. Not the product in `2*3*4`."""
_CODE = re.compile(r"`([^`\n]+)`")
"""A span of code: "`42`"."""

_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad"), None)
_QUOTES = {ord("“"): '"', ord("”"): '"', ord("‘"): "'", ord("’"): "'", ord("⁄"): "/", ord("⋅"): "·", ord("∕"): "/"}
_GROUPING_SPACE = re.compile(r"(?<=[0-9])[\u00a0\u2009\u202f](?=[0-9]{3}(?![0-9]))")
"""A narrow space between digit triples: `12 000`."""
_SPACES = re.compile(r"[\u00a0\u2000-\u200a\u202f\u3000]")
"""A blank that is no ASCII blank: `5 km`."""
_MINUS = re.compile(r"[−﹣]|[‐‑‒–](?=\s?[0-9.$€£\\])")  # noqa: RUF100
"""A look-alike of minus before a number: `–5`."""
_SUPERSCRIPT = re.compile(r"[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
"""A raised number: `10⁻³`."""
_SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789", "⁺")
_VULGAR = re.compile(r"([0-9]?)([¼½¾⅐-⅞])")
"""A fraction in one character: `2½`."""
_LATEX_TEXT = re.compile(
    r"\\(?:text|textbf|textit|textrm|texttt|mathrm|mathbf|mathit|mathsf|operatorname|mbox|emph)\s*\{([^{}]*)\}"
)
r"""A LaTeX command around text: `\text{cm}`."""


def final_part(text: str) -> str | None:
    """What follows the last thinking section; None when thinking was opened and never closed.

    A closing tag without an opening one counts too: chat templates often open the section themselves.
    """
    rest = text[max((closed.end() for closed in _CLOSED.finditer(text)), default=0) :]
    return None if _OPENED.search(rest) else rest[-LONGEST:]


def without_markup(text: str) -> str:
    """`text` without Markdown emphasis, code marks and fences; products (`2*3`) and powers (`x**2`) stay."""
    if "`" in text:
        text = _CODE.sub(r"\1", _FENCE.sub("", text))
    if "*" in text or "_" in text:
        text = _SINGLE.sub(lambda match: match[1] or match[2], _DOUBLE.sub("", text))
    return text


def plain_characters(text: str) -> str:
    """`text` with look-alike characters mapped to ASCII: digits of any script, minus signs, full-width forms, ½, ²."""
    if text.isascii():
        return text
    text = "".join(map(_plain, text.translate(_INVISIBLE).translate(_QUOTES)))
    text = _SPACES.sub(" ", _GROUPING_SPACE.sub("", text))
    text = _SUPERSCRIPT.sub(lambda match: "^" + match[0].translate(_SUPERSCRIPTS), text)
    text = _VULGAR.sub(_vulgar, text)
    return _MINUS.sub("-", text)


@lru_cache(maxsize=4096)
def _plain(character: str) -> str:
    if character.isascii():
        return character
    if unicodedata.category(character) == "Nd":
        return str(unicodedata.decimal(character))
    if 0xFF01 <= ord(character) <= 0xFF5E:
        return chr(ord(character) - 0xFEE0)
    return character


def _vulgar(match: re.Match[str]) -> str:
    fraction = unicodedata.normalize("NFKC", match[2]).replace("⁄", "/")
    return f"{match[1]} {fraction}" if match[1] else fraction


def without_latex_text(text: str) -> str:
    r"""`text` with `\text{...}` and its kin replaced by what they hold, and without dollar delimiters."""
    for _ in range(MOST_NESTED):
        text, replaced = _LATEX_TEXT.subn(r" \1 ", text)
        if not replaced:
            break
    return re.sub(r"\\[()\[\]]", " ", text)


def squeezed(text: str) -> str:
    """`text` with every run of white space made one blank, and none at the ends."""
    return " ".join(text.split())


@lru_cache(maxsize=1024)
def readable(text: str) -> str | None:
    """The final part of a reply in plain characters and without markup; None when it never stopped thinking."""
    part = final_part(text)
    return None if part is None else plain_characters(without_markup(part))
