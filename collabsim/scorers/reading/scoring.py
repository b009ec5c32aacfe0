"""The base of every kind of answer: how it is asked for, read, compared and judged.

In: a text and an item. Out: a `Score`. A subclass says its name (`kind`), how an answer is read (`extract`), what its golds
are (`gold`) and when two answers are the same (`same`, by canonical value unless it says otherwise). All else that the rest
of the code asks of a kind has a default here. Judging is memoised because sweeps score the same few texts thousands of
times. Left out on purpose: what a reply looks like; see `text.py` and `declarations.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from collabsim.errors import ScoringError
from collabsim.item import Answer, Item, ItemView, Score
from collabsim.scorers.reading.answer_form import asked_form, asks_a_form
from collabsim.scorers.reading.text import final_part

NO_ANSWER = frozenset({"content_filter", "overflow"})
"""Finish reasons after which a reply answers nothing, whatever it says."""


def accepted_golds(item: Item) -> tuple[str, ...]:
    """The texts that count as right for an item whose gold is text."""
    return (item.gold,) if isinstance(item.gold, str) else tuple(map(str, item.gold))


@dataclass(frozen=True, slots=True)
class Extraction:
    """What a text commits to, and why it is that."""

    answer: Answer | None
    reason: str


class AnswerScorer:
    """Base of the scorers that compare an extracted answer with accepted golds; one subclass is one kind of answer."""

    kind: str = ""
    """Name of the kind: its entry point, and what `task.kind` and `collabsim score --kind` say."""
    has_options: bool = False
    """Whether answers are letters of the item's options; other kinds get an item's options as texts."""
    waits: bool = False
    """Whether `score` runs programs: it is then called from a thread, and on a sample of golds only when a task is loaded."""
    gold_is_example: bool = False
    """Whether a gold is one right answer of many, so that another gold of one question is no contradiction."""
    judged_by: tuple[str, ...] = ()
    """Fields of an item's row that decide in place of its gold, which may then be missing."""
    fields: tuple[str, ...] = ()
    """Fields that a JSON line may hold for `score` besides the common ones."""
    placeholder: str = "<answer>"
    """What stands in the prompt where the answer goes."""
    golds_title: str = "what counts as right"
    """Heading over `shown_golds`."""

    def extract(self, text: str, view: ItemView, finish: str = "stop") -> Answer | None:
        """The answer that `text` commits to, or None. A cut text counts only what it declared."""
        raise NotImplementedError

    def extraction(self, text: str, view: ItemView, finish: str = "stop") -> Extraction:
        """`extract` with its reason, for scores."""
        answer = self.extract(text, view, finish)
        return Extraction(answer, why_unparsed(text, finish) if answer is None else "")

    def same(self, a: Answer, b: Answer, view: ItemView) -> bool:  # noqa: ARG002
        """Whether two answers have one canonical value."""
        return bool(a.value == b.value)

    def near(self, answer: Answer, gold: Answer, tolerance: float) -> bool:  # noqa: ARG002
        """Whether an answer differs from the gold by at most `tolerance` of the gold; only kinds with numbers know how.

        For items whose golds are rounded: their row says so in a field `tolerance`. Votes never use it.
        """
        return False

    def gold(self, text: str, view: ItemView) -> Answer | None:
        """An accepted text as an answer; None when it is none of this scorer's kind."""
        raise NotImplementedError

    def shown_by(self, golds: Sequence[str], choices: Mapping[str, str], fields: Mapping[str, Any]) -> bool:  # noqa: ARG002
        """Whether a record that names no kind is of this one, by its golds, options and fields; see `kinds.INFERRED`."""
        return False

    def ending(self, fields: Mapping[str, Any]) -> str:  # noqa: ARG002
        """The last paragraph of the task's own prompt: the form that this scorer reads."""
        return f"End with one line: Answer: {self.placeholder}"

    def asked_form(self, gold: str, template: str | None = None) -> str:
        """`gold` as a reply in the form that the prompt asks for; `template` is what replaces the task's own wording."""
        return asked_form(gold, template)

    def written_forms(self, gold: str, template: str | None = None) -> list[str]:
        """How `gold` may be written, the likeliest first: bare where a template asks for no form."""
        asked = self.asked_form(gold, template)
        return [gold, asked] if template is not None and not asks_a_form(template) else [asked]

    def gold_content(self, gold: Any) -> Any:
        """What of a gold belongs to the identity of its item."""
        return gold if isinstance(gold, str) else list(gold)

    def chance(self, gold: Any, choices: Mapping[str, str], stated: float | None) -> float:
        """Score of a blind guess, in [0, 1]: the share of right options; without options what the record states, or 0."""
        return (1 if isinstance(gold, str) else len(gold)) / len(choices) if choices else stated or 0.0

    def missing(self, options: Any, fields: Mapping[str, Any]) -> str | None:  # noqa: ARG002
        """The message about what a single reply cannot be scored without; None when nothing lacks."""
        if options or not self.has_options:
            return None
        return f"options: expected a mapping or a list of texts, got none; kind {self.kind} needs options"

    def defect(self, item: Item) -> str | None:
        """The name under which an item that cannot be scored is counted; None for a sound one. Looks, but runs nothing."""
        return "no_options" if self.has_options and not item.view.choices else None

    def shown_golds(self, item: Item) -> list[str]:
        """What counts as right for an item, for a person to read."""
        return list(accepted_golds(item))

    def score(self, text: str, item: Item, finish: str = "stop") -> Score:
        """The score of `text` as a final output for `item`: right, wrong or unparsed; an error, never kept, if scoring
        itself failed.
        """
        try:
            return _judged(self, text, item, finish)
        except ScoringError as error:
            return Score(None, "error", None, str(error))

    def judge(self, text: str, item: Item, finish: str) -> Score:
        """`score` without memory."""
        extraction = self.extraction(text, item.view, finish)
        answer, reason = extraction.answer, extraction.reason
        if answer is None:
            return Score(0.0, "unparsed", None, reason)
        for gold in accepted_golds(item):
            accepted = self.gold(gold, item.view)
            if accepted is not None and self.same(answer, accepted, item.view):
                return Score(1.0, "right", answer.text, reason)
            if accepted is not None and self.near(answer, accepted, _tolerance(item)):
                return Score(1.0, "right", answer.text, f"{reason}; within the item's tolerance")
        return Score(0.0, "wrong", answer.text, reason)


def _tolerance(item: Item) -> float:
    """What the item's row allows; 0 when it says nothing that can be meant."""
    tolerance = item.extra.get("tolerance")
    return float(tolerance) if isinstance(tolerance, int | float) and 0 < tolerance < 1 else 0.0


@lru_cache(maxsize=1 << 16)
def _judged(scorer: AnswerScorer, text: str, item: Item, finish: str) -> Score:
    return scorer.judge(text, item, finish)


def why_unparsed(text: str, finish: str) -> str:
    """Why a text without an answer has none, as far as its form tells."""
    if finish in NO_ANSWER:
        return f"no answer: {finish}"
    if not text.strip():
        return "empty"
    if final_part(text) is None:
        return "thinking never closed"
    return "no answer before the cut" if finish != "stop" else "no answer found"


def declared_by(part: str, start: int) -> str:
    """The reason of an answer that was declared at a place of the final part."""
    line = part[start : start + 80].split("\n", 1)[0].strip()
    return f"last declaration {line if len(line) <= 60 else line[:57] + '...'!r}"
