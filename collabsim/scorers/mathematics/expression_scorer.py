r"""Mathematics as answers: numbers, expressions, intervals, sets, pairs, matrices, equations, short text.

In: a reply, and golds as a data set of mathematics writes them. Out: what the reply commits to, compared as mathematics. The
last declaration that can be read wins; a phrase of words ("the answer is correct") never outranks a box, tag or label. Boxes
side by side (`\boxed{2} and \boxed{5}`) are all of them where several values are asked, else the last. Without a
declaration, an uncut reply of one line is its own answer, and of a longer one the last formula or number. Left out
on purpose: what an answer means, and when two are the same; see `answer_reader.py` and `equality.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from collabsim.item import Answer, ItemView
from collabsim.scorers.mathematics.answer_reader import read
from collabsim.scorers.mathematics.answer_values import Listing, Opaque, Reading, Several, Words, is_prose
from collabsim.scorers.mathematics.equality import near, same
from collabsim.scorers.mathematics.number_scorer import BUT, NOT, declared_number, last_mention
from collabsim.scorers.reading.declarations import Declaration, declarations, first_sentence, last_matches
from collabsim.scorers.reading.numbers import without_latex
from collabsim.scorers.reading.scoring import NO_ANSWER, AnswerScorer, Extraction, declared_by, why_unparsed
from collabsim.scorers.reading.text import readable, squeezed
from collabsim.scorers.text.exact_scorer import LONGEST_LINE, PLACEHOLDERS

_REASON = re.compile(
    r"[,;.]?\s+(?:because|since|where|when|which|whenever|as\s+(?:the|we|it|shown)|for\s+(?:all|any|some)|so\s+that|so|with)\s",
    re.IGNORECASE,
)
"""Where a reason or condition begins: `x = 2, because it`."""
_LEAD = re.compile(
    r"(?:[\s:=≈~]|(?:that|therefore|thus|then|so|simply|just|only|exactly|approximately|approx\.?|about|around|roughly|nearly"
    r"|equal to|equals|given by|clearly|now|indeed|is"
    r"|the (?:number|value|expression|interval|set|matrix|point|pair|list))\b)+",
    re.IGNORECASE,
)
"""Words before the value of a declaration: `therefore exactly `."""
_WHICH = re.compile(
    r",?\s+(?:which|that)\s+(?:is|equals|gives|becomes|simplifies\s+to|evaluates\s+to)\s+", re.IGNORECASE
)
"""A second value of one answer: `1/2, which is 0.5`."""
_TRUTH = re.compile(r"\b(?:is|are)\s+(true|false)\W*\Z", re.IGNORECASE)
"""A verdict on a statement: `the claim is false.`"""
_VERB = re.compile(r"\b(?:is|are|equals?|becomes|have|get|obtain|gives|at|be)\b(?:\s+equal\s+to)?\s*:?\s+(?!not\b)")
"""A verb after which the value stands: `area is equal to 4`."""
_ANGLES = re.compile(r"<([^<>=]+)>")
"""A vector in angle brackets: `<1, 2>`."""
_FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$]+)\$|\\\[(.+?)\\\]|\\\((.+?)\\\)", re.DOTALL)
"""A formula in a text: `$x^2$`."""
_BETWEEN_BOXES = re.compile(r"[\s$.]*(?:(?:,|;|and|or|&)[\s$]*){0,2}(?:[A-Za-z]\s*=\s*)?[\s$]*")
"""What may stand between boxes of one answer: ` and `."""
_DISPLAY = re.compile(r"^\s*(?:\$\$|\\\[)\s*|\s*(?:\$\$|\\\])\s*$")
"""The delimiters of a displayed formula: `$$x$$`."""
_BULLET = re.compile(r"^(?:[*+•]|[-](?=\s+\D)|[0-9]{1,2}[.)])\s+(?=\S)")
"""A bullet, not a minus sign: `* 5`."""
_WRITTEN_AS_MATHEMATICS = re.compile(r"\\[a-zA-Z]|\^|^[\[(].*\d.*[\])]$|^[a-z]\s?=|^-?\d+(?:\s*,\s*-?\d+)+$")
r"""Signs of mathematics in a gold: `\frac{1}{2}`, `(1, 2)`, `x = 3`."""
MOST_FORMULAS = 20


class ExpressionScorer(AnswerScorer):
    """Scores answers of mathematics; the canonical value is a `Reading`."""

    kind = "expression"

    def extract(self, text: str, view: ItemView, finish: str = "stop") -> Answer | None:  # noqa: ARG002
        """The answer that `text` commits to, or None."""
        return _extraction(text, finish).answer

    def extraction(self, text: str, view: ItemView, finish: str = "stop") -> Extraction:  # noqa: ARG002
        """`extract` with its reason."""
        return _extraction(text, finish)

    def same(self, a: Answer, b: Answer, view: ItemView) -> bool:  # noqa: ARG002
        """Whether two answers are the same mathematics. Raises `ScoringError` when no worker can be had to decide it."""
        return same(a.value, b.value)

    def near(self, answer: Answer, gold: Answer, tolerance: float) -> bool:
        """Whether the numbers of an answer differ from the gold's, one by one, by at most `tolerance` of the gold's."""
        return tolerance > 0 and near(answer.value.value, gold.value.value, tolerance)

    def gold(self, text: str, view: ItemView) -> Answer | None:  # noqa: ARG002
        """An accepted text as an answer; None when nothing is left of it."""
        reading = read(text)
        return None if reading is None else Answer(text, reading)

    def shown_by(self, golds: Sequence[str], choices: Mapping[str, str], fields: Mapping[str, Any]) -> bool:  # noqa: ARG002
        """Whether all golds are written as mathematics."""
        return all(map(_WRITTEN_AS_MATHEMATICS.search, golds))


@lru_cache(maxsize=4096)
def _extraction(text: str, finish: str) -> Extraction:
    part = None if finish in NO_ANSWER else readable(text)
    if part is None:
        return Extraction(None, why_unparsed(text, finish))
    declared_at = declarations(part)
    words: Extraction | None = None
    for place in range(len(declared_at) - 1, -1, -1):
        declaration = declared_at[place]
        if declaration.form == "open box":
            return Extraction(None, f"box never closed: {declared_by(part, declaration.start)}")
        answer = _boxed(part, declared_at[: place + 1]) if declaration.form == "box" else _declared(declaration)
        if answer is None and declaration.form in ("box", "tag"):
            return Extraction(None, f"nothing to read: {declared_by(part, declaration.start)}")
        if answer is None:
            continue
        extraction = Extraction(answer, declared_by(part, declaration.start))
        if declaration.form not in ("sentence", "correction") or not is_prose(answer.value.value):
            return extraction
        words = words or extraction
    if words is not None:
        return words
    answer = _undeclared(part.strip(), declared=bool(declared_at)) if finish == "stop" else None
    return Extraction(answer, "the end of the reply" if answer else why_unparsed(text, finish))


def _answer(text: str) -> Answer | None:
    reading = read(text)
    return None if reading is None else Answer(squeezed(text), reading)


def _boxed(part: str, declared_at: list[Declaration]) -> Answer | None:
    """The last box, with those side by side with it."""
    *earlier, last = declared_at
    answer = _answer(last.text)
    texts, start = [last.text], last.start
    for declaration in reversed(earlier):
        between = part[declaration.end : start]
        if declaration.form == "sentence" and declaration.start < start:
            continue
        if declaration.form != "box" or not declaration.end or not _BETWEEN_BOXES.fullmatch(between):
            break
        texts.insert(0, declaration.text)
        start = declaration.start
    readings = [read(text) for text in texts]
    if answer is None or len(readings) == 1 or not all(readings):
        return answer
    every = Listing("", "", tuple(reading.value for reading in readings if reading is not None))
    value = Several(every, answer.value.value)
    return Answer(", ".join(texts), Reading(value, ",".join(reading.plain for reading in readings if reading)))


def _declared(declaration: Declaration) -> Answer | None:
    """What a declaration other than a box says; None for nothing that can be read, so that an earlier one may count."""
    text = declaration.text
    if declaration.form in ("tag", "marker"):
        return None if text in PLACEHOLDERS else _answer(text)
    if text in PLACEHOLDERS:
        return None
    sentence, mark = first_sentence(text, initials=True)
    if declaration.form != "label" and "?" in mark:
        return None
    if mark == "!." or (mark == "!" and declaration.form == "label"):
        sentence += "!"  # a factorial, where no sentence is exclaimed
    if declaration.negated:
        but = BUT.search(sentence)
        return _phrase(sentence[but.end() :]) if but else None
    answer = _phrase(sentence)
    if declaration.form == "correction" and answer is not None and is_prose(answer.value.value):
        return None
    return answer


def _phrase(text: str) -> Answer | None:
    """What a declaring phrase says: all of it if it is mathematics, else its formula, its number, or its words."""
    text = _LEAD.sub("", text, count=1) if _LEAD.match(text) else text
    text = _ANGLES.fullmatch(text)[1] if _ANGLES.fullmatch(text) else text  # type: ignore[index]
    clause = _REASON.split(text)[0].rstrip(" ,;:")
    for candidate in dict.fromkeys((clause, clause.rstrip("!"), text)):
        answer = _answer(candidate)
        if (
            answer is not None
            and not isinstance(answer.value.value, Words | Opaque)
            and not is_prose(answer.value.value)
        ):
            return answer
    if which := _WHICH.search(text):
        return _phrase(text[which.end() :])
    text = clause
    if formulas := _formulas(text):
        return formulas[0] if text.lstrip().startswith(("$", "\\(", "\\[")) else formulas[-1]
    number = declared_number(squeezed(without_latex(text)))
    if isinstance(number, tuple):
        return _answer(number[0])
    return _answer(text) if len(text) <= LONGEST_LINE else None


def _formulas(text: str) -> list[Answer]:
    """The formulas of a text that are not negated, as answers."""
    matches = [
        match for match in _FORMULA.finditer(text) if not NOT.search(text[max(0, match.start() - 80) : match.start()])
    ]
    answers = [_answer(next(filter(None, match.groups()))) for match in matches[-MOST_FORMULAS:]]
    return [answer for answer in answers if answer is not None]


def _concluded(line: str) -> Answer | None:
    """The mathematics after the last "is" of a line: `the area is 9π`. None for words, and for what is rejected."""
    verb = last_matches(_VERB, line, 1)
    if not verb or len(line) > 5 * LONGEST_LINE or "$" in line or NOT.search(line[: verb[0].end()]):
        return None
    answer = _phrase(first_sentence(line[verb[0].end() :])[0])
    return None if answer is None or isinstance(answer.value.value, Opaque) or is_prose(answer.value.value) else answer


def _undeclared(part: str, *, declared: bool) -> Answer | None:
    """The answer of a reply that declares none: all of one short line, else its last formula or number."""
    if "\n" not in part and len(part) <= LONGEST_LINE and not declared:
        if truth := _TRUTH.search(part):
            return _answer(truth[1])
        answer = _phrase(_DISPLAY.sub("", part))
        if answer is None or is_prose(answer.value.value) or isinstance(answer.value.value, Opaque):
            answer = _concluded(part) or answer
        label = re.match(r"(?:yes|no|true|false)\b", part, re.IGNORECASE)
        return answer if answer is None or label or not is_prose(answer.value.value) or len(part.split()) <= 6 else None
    if not declared and re.match(r"(?:yes|no|true|false)\b\s*[,.;:!—-]", part, re.IGNORECASE):
        return _answer(part.split("\n")[0])
    for line in reversed(part.splitlines()):
        if concluded := _concluded(line):
            return concluded
        if formulas := _formulas(line):
            return formulas[-1]
        answer = _answer(_BULLET.sub("", line)) if len(line) <= LONGEST_LINE else None
        if answer is not None and not isinstance(answer.value.value, Opaque) and not is_prose(answer.value.value):
            return answer
        mentioned = last_mention(line)
        if mentioned is not None:
            return _answer(mentioned[0]) if isinstance(mentioned, tuple) else None
    return None
