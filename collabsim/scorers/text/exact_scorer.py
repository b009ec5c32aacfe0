"""Short texts as answers: names, labels, yes and no.

In: a reply, and golds that are text. Out: the text that the reply commits to, compared without case, outer punctuation
and spacing, and by value where both are plain numbers. The last declaration wins; without one, an uncut reply of one
short line is its own answer, and a reply that opens with a label ("Yes, ...") answers by it. Articles and inner marks
stay: golds such as `A` or `) )` are answers too. Left out on purpose: word overlap, and equivalence of expressions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from collabsim.item import Answer, ItemView
from collabsim.scorers.reading.declarations import Declaration, declarations, first_sentence
from collabsim.scorers.reading.numbers import Number, same_number, whole_number
from collabsim.scorers.reading.scoring import NO_ANSWER, AnswerScorer, Extraction, declared_by, why_unparsed
from collabsim.scorers.reading.text import plain_characters, readable, squeezed, without_latex_text, without_markup

LONGEST_LINE = 200
"""Characters up to which a reply of one line counts as an answer by itself."""

PLACEHOLDERS = frozenset({"<answer>", "<number>", "<letter>"})
"""The prompt's own words for "your answer here", echoed by weak models."""

_OPPOSITE = {"yes": "no", "no": "yes", "true": "false", "false": "true"}
_LABEL = re.compile(r"(yes|no|true|false)\b(?P<stop>\s*[,.;:!—-]|\s*\Z)?", re.IGNORECASE)
"""A reply that begins with its answer: `Yes, it does`."""
_PAIRS = {"(": ")", "[": "]", "{": "}", '"': '"', "'": "'", "<": ">", "$": "$"}
_REASON = re.compile(r",?\s+(?:because|since)\s", re.IGNORECASE)
"""Where a reason begins: `Paris because it`."""


class ExactScorer(AnswerScorer):
    """Scores answers that are a short text; the canonical value is a normalised string, or a number."""

    kind = "exact"

    def extract(self, text: str, view: ItemView, finish: str = "stop") -> Answer | None:  # noqa: ARG002
        """The text that `text` commits to, or None."""
        return _extraction(text, finish).answer

    def extraction(self, text: str, view: ItemView, finish: str = "stop") -> Extraction:  # noqa: ARG002
        """`extract` with its reason."""
        return _extraction(text, finish)

    def same(self, a: Answer, b: Answer, view: ItemView) -> bool:  # noqa: ARG002
        """Whether two texts are equal when normalised, or equal numbers."""
        return same_number(a.value, b.value)

    def gold(self, text: str, view: ItemView) -> Answer | None:  # noqa: ARG002
        """An accepted text as an answer; None when nothing is left of it."""
        return as_answer(text)

    def shown_by(self, golds: Sequence[str], choices: Mapping[str, str], fields: Mapping[str, Any]) -> bool:  # noqa: ARG002
        """True: any gold is a text."""
        return True


@lru_cache(maxsize=4096)
def _extraction(text: str, finish: str) -> Extraction:
    part = None if finish in NO_ANSWER else readable(text)
    if part is None:
        return Extraction(None, why_unparsed(text, finish))
    declared_at = declarations(part)
    for declaration in reversed(declared_at):
        reason = declared_by(part, declaration.start)
        if declaration.form == "open box":
            return Extraction(None, f"box never closed: {reason}")
        if declared := _declared(declaration):
            answer = as_answer(declared)
            return Extraction(answer, reason if answer else f"says nothing definite: {reason}")
        if declaration.form in ("box", "tag"):
            return Extraction(None, f"empty: {reason}")
    answer = _whole_reply(part.strip()) if finish == "stop" and not declared_at else None
    return Extraction(answer, "the whole reply" if answer else why_unparsed(text, finish))


def _declared(declaration: Declaration) -> str | None:
    if declaration.form in ("correction", "marker") or declaration.negated:
        return declaration.text if declaration.form == "marker" else None
    if declaration.form == "sentence":
        sentence, mark = first_sentence(declaration.text, initials=True)
        return None if "?" in mark else _REASON.split(sentence)[0].lstrip(": ")
    return None if declaration.text in PLACEHOLDERS else declaration.text


def _whole_reply(reply: str) -> Answer | None:
    label = _LABEL.match(reply)
    if label and label["stop"] is not None:
        return as_answer(reply)
    return as_answer(reply) if "\n" not in reply and len(reply) <= LONGEST_LINE else None


def as_answer(text: str) -> Answer | None:
    """A declared text with its canonical value; None when it says nothing, or both yes and no."""
    value = canonical_text(text)
    if label := _LABEL.match(value) if isinstance(value, str) else None:
        opposite = re.search(rf"\b{_OPPOSITE[label[1]]}\b", str(value))
        if opposite:
            return None
        value = label[1] if label["stop"] is not None else value
    return None if value == "" else Answer(squeezed(text), value)


@lru_cache(maxsize=4096)
def canonical_text(text: str) -> str | Number:
    """`text` without case, outer brackets, quotes and final marks; its value when it is a plain number."""
    text = squeezed(without_latex_text(plain_characters(without_markup(text))))
    number = whole_number(text, units=False)
    if number is not None:
        return number
    text = text.casefold()
    while (shorter := _peeled(text)) != text:
        text = shorter
    return text


def _peeled(text: str) -> str:
    stripped = text.rstrip(".,;:!").rstrip() or text
    if len(stripped) > 2 and _PAIRS.get(stripped[0]) == stripped[-1] and not _closes_early(stripped):
        return stripped[1:-1].strip() or stripped
    return stripped


def _closes_early(text: str) -> bool:
    """Whether the first bracket closes before the end, as in `(a) or (b)`."""
    depth, opening, closing = 0, text[0], _PAIRS[text[0]]
    if opening == closing:
        return opening in text[1:-1]
    for position, character in enumerate(text):
        depth += (character == opening) - (character == closing)
        if depth == 0:
            return position < len(text) - 1
    return True
