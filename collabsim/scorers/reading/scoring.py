"""What all scorers share: judging with memory, and the verdict of an answer against the accepted golds.

In: a text and an item. Out: a `Score`. A subclass says how an answer is read (`extract`) and when two are the same
(`same`, by canonical value unless it says otherwise). Judging is memoised because sweeps score the same few texts
thousands of times. Left out on purpose: what a reply looks like; see `text.py` and `declarations.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from collabsim.errors import ScoringError
from collabsim.item import Answer, Item, ItemView, Score
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
    """Base of the scorers that compare an extracted answer with accepted golds."""

    kind = ""

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
        found = self.extraction(text, item.view, finish)
        answer = found.answer
        if answer is None:
            return Score(0.0, "unparsed", None, found.reason)
        for gold in accepted_golds(item):
            accepted = self.gold(gold, item.view)
            if accepted is not None and self.same(answer, accepted, item.view):
                return Score(1.0, "right", answer.text, found.reason)
            if accepted is not None and self.near(answer, accepted, _tolerance(item)):
                return Score(1.0, "right", answer.text, f"{found.reason}; within the item's tolerance")
        return Score(0.0, "wrong", answer.text, found.reason)


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
