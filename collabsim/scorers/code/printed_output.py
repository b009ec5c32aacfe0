"""Comparing what a script printed with what it should have.

In: two texts, and a tolerance where the task gives one. Out: whether they agree: line by line without white space at the ends
of lines and of the text, and with a tolerance word by word, numbers by value. Left out on purpose: order and case.
"""

from __future__ import annotations

import math


def same_output(printed: str, wanted: str, tolerance: float | None = None) -> bool:
    """Whether a script printed what was wanted; `tolerance` is relative and absolute, None compares text only."""
    lines, wanted_lines = _lines(printed), _lines(wanted)
    if lines == wanted_lines:
        return True
    if tolerance is None or len(lines) != len(wanted_lines):
        return False
    return all(_same_line(line, other, tolerance) for line, other in zip(lines, wanted_lines, strict=True))


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]


def _same_line(line: str, wanted: str, tolerance: float) -> bool:
    words, wanted_words = line.split(), wanted.split()
    if len(words) != len(wanted_words):
        return False
    return all(_same_word(word, other, tolerance) for word, other in zip(words, wanted_words, strict=True))


def _same_word(word: str, wanted: str, tolerance: float) -> bool:
    if word == wanted:
        return True
    try:
        number, other = float(word), float(wanted)
    except ValueError:
        return False
    finite = math.isfinite(number) and math.isfinite(other)
    return finite and math.isclose(number, other, rel_tol=tolerance, abs_tol=tolerance)
