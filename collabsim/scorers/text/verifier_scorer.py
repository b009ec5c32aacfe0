"""Answers that a verifier judges: reasoning-gym tasks with many right answers.

In: a reply and a `Reference` (one right answer, and the record that the verifier needs). Out: the verifier's score of the
extracted answer, which is all it sees. A gold inside a longer answer earns nothing, and neither does the mere form of an
answer, for which verifiers give small credits. A verifier that also takes nonsense is replaced by comparison with the
reference. Left out on purpose: equivalence of answers beyond spacing; two right answers may well be different ballots.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from collabsim.item import Answer, Item, ItemView, Score, answers_for
from collabsim.scorers.reading.declarations import Declaration, declarations, first_sentence
from collabsim.scorers.reading.scoring import NO_ANSWER, AnswerScorer
from collabsim.scorers.reading.text import final_part, squeezed, without_latex_text, without_markup
from collabsim.scorers.text.exact_scorer import LONGEST_LINE, PLACEHOLDERS
from collabsim.scorers.text.harmless_text import Evaluator, is_harmless

FORM_CREDIT = 0.1
"""Verifiers pay up to this much for an answer that can be parsed; it measures nothing and counts as 0."""

NONSENSE = "qzx wvk"


class Reference(NamedTuple):
    """The gold of a verified item."""

    text: str
    """One right answer."""
    entry: Mapping[str, Any]
    """The record that the verifier needs."""
    nonsense: float = 0.0
    """What the verifier gives for nonsense: no credit up to it counts, and from 1 on only the reference's own text."""


class Verify(Protocol):
    """A verifier of answers."""

    def __call__(self, answer: str, entry: Mapping[str, Any]) -> float:
        """The credit of an answer, in [0, 1], for a record. May raise on answers that it cannot read."""


class VerifierScorer(AnswerScorer):
    """Scores answers by a verifier; the canonical value is the answer with spacing made equal."""

    kind = "verifier"
    gold_is_example = True

    def __init__(self, verify: Verify, evaluator: Evaluator = "none") -> None:
        """`verify` judges the answers; `evaluator` is what it hands their text to."""
        self.verify = verify
        self.evaluator = evaluator

    def ending(self, fields: Mapping[str, Any]) -> str:  # noqa: ARG002
        """The last paragraph of the task's own prompt; verified answers may have several lines."""
        return f"End with: Answer: {self.placeholder}"

    def gold_content(self, gold: Reference) -> str:
        """The text of the reference."""
        return gold.text

    def shown_golds(self, item: Item) -> list[str]:
        """The one right answer that is known."""
        return [item.gold_text]

    def extract(self, text: str, view: ItemView, finish: str = "stop") -> Answer | None:  # noqa: ARG002
        """The answer that `text` commits to, or None: declared, or all of a short uncut reply."""
        part = None if finish in NO_ANSWER else final_part(text)
        if part is None:
            return None
        part = without_markup(part)
        declared_at = declarations(part)
        for declaration in reversed(declared_at):
            if declaration.form == "open box":
                return None
            if declared := _declared(declaration):
                return Answer(declared, squeezed(declared))
            if declaration.form in ("box", "tag"):
                return None
        reply = part.strip()
        bare = finish == "stop" and not declared_at and 0 < len(reply) <= LONGEST_LINE
        return Answer(reply, squeezed(reply)) if bare else None

    def judge(self, text: str, item: Item, finish: str) -> Score:
        """The verifier's credit for the extracted answer."""
        answer = answers_for(item).extract(text, finish)
        if answer is None:
            return super().judge(text, item, finish)
        reference: Reference = item.gold
        if answer.value == squeezed(reference.text):
            return Score(1.0, "right", answer.text)
        if reference.nonsense >= 1.0:
            same = squeezed(answer.text).casefold().rstrip(".") == squeezed(reference.text).casefold()
            return Score(float(same), "right" if same else "wrong", answer.text)
        if not is_harmless(answer.text, self.evaluator):
            return Score(0.0, "wrong", answer.text, "not handed to the verifier: no plain value")
        try:
            credit = float(self.verify(answer.text, reference.entry))
        except Exception as error:
            return Score(0.0, "unparsed", answer.text, f"the verifier cannot read it: {type(error).__name__}")
        return _score(credit, answer.text, reference)

    def gold(self, text: str, view: ItemView) -> Answer | None:  # noqa: ARG002
        """A reference text as an answer."""
        return Answer(text, squeezed(text)) if text.strip() else None

    def nonsense(self, entry: Mapping[str, Any]) -> float:
        """The verifier's credit for a meaningless answer."""
        try:
            return float(self.verify(NONSENSE, entry))
        except Exception:
            return 0.0


def _declared(declaration: Declaration) -> str:
    """What a declaration says, over several lines where it may; empty when it says nothing."""
    if declaration.form == "correction" or declaration.negated:
        return ""
    declared = _first_paragraph(declaration.body or declaration.text)
    if declaration.form == "sentence":
        declared, mark = first_sentence(declared, initials=True)
        return "" if "?" in mark else declared
    if declaration.form == "box":
        return without_latex_text(declared).strip()
    return "" if declared in PLACEHOLDERS else declared


def _first_paragraph(text: str) -> str:
    return text.strip("\n").split("\n\n", 1)[0].strip()


def _score(credit: float, answer: str, reference: Reference) -> Score:
    if credit >= 1.0:
        return Score(1.0, "right", answer)
    if squeezed(reference.text) in squeezed(answer):
        return Score(0.0, "wrong", answer, "a right answer inside a longer one earns nothing")
    if not credit > max(FORM_CREDIT, reference.nonsense):  # also for nan
        return Score(0.0, "wrong", answer)
    return Score(credit, "partial", answer)
