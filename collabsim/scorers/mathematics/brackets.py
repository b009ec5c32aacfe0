"""Splits an answer into its parts at brackets, separators and rows.

In: plain mathematics (see `latex.py`). Out: its parts as text. Brackets of all kinds count together, so that `[1, 2)` is
one interval. Left out on purpose: what the parts are; see `answer_reader.py`.
"""

from __future__ import annotations

import re

OPENING, CLOSING = "([{⦃⟨", ")]}⦄⟩"
_WORD_SEPARATOR = re.compile(r",?\s+(?:and|or)\s+|\s*[,;]\s*(?:(?:and|or)\s+)?|\s+&\s+")
"""What stands between items: `1 and 2`."""
_THOUSANDS = re.compile(r"(?<![0-9.,])[1-9][0-9]{0,2}(?:,[0-9]{3})+(?![0-9])(?!,[0-9])")
"""A comma inside a number, which separates nothing: `1,200`."""
_MATRIX = re.compile(r"\\begin\s?\{([pbvBV]?matrix|smallmatrix|array)\}(?:\{[lcr|]*\})?(.*)\\end\s?\{\1\}")
r"""A matrix: `\begin{pmatrix}1 & 2\end{pmatrix}`."""


def depth_is_zero(text: str) -> list[bool]:
    """For every character, whether it stands outside all brackets."""
    outside, depth = [], 0
    for character in text:
        if character in CLOSING:
            depth = max(0, depth - 1)
        outside.append(depth == 0)
        depth += character in OPENING
    return outside


def split(text: str, separator: re.Pattern[str]) -> list[str]:
    """The parts of `text` between separators outside brackets."""
    outside, parts, start = depth_is_zero(text), [], 0
    for match in separator.finditer(text):
        if outside[match.start()]:
            parts.append(text[start : match.start()].strip())
            start = match.end()
    return [*parts, text[start:].strip()]


def items(text: str, *, enclosed: bool = False) -> list[str]:
    """What stands between commas, semicolons, "and", "or". A comma between digit triples separates nothing, unless
    in brackets that have no other separator: `(100,200)` is a pair.
    """
    if not enclosed or re.search(r"[,;]\s", text):
        text = _THOUSANDS.sub(lambda match: match[0].replace(",", ""), text)
    return split(text, _WORD_SEPARATOR)


def inside_brackets(text: str) -> str | None:
    """What one pair of brackets around all of `text` holds; None without one."""
    if len(text) < 2 or text[0] not in OPENING or text[-1] not in CLOSING:
        return None
    return text[1:-1].strip() if not any(depth_is_zero(text)[1:-1]) else None


def matrix_cells(text: str) -> list[list[str]] | None:
    """The cells of a LaTeX matrix, row by row; None for anything else."""
    match = _MATRIX.fullmatch(text)
    if match is None:
        return None
    rows = [row for row in match[2].split("⏎") if row.strip()]
    return [[cell.strip() for cell in row.split("&")] for row in rows]
