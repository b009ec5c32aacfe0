"""Turns the final state of a graph into an outcome.

In: `state["final"]` and the item. Out: the final output in canonical form, its outcome, its verdict, and the score of each
text with the extracted answer and the reason. A tie of several texts has the weighted mean of their scores; a run in which
no seat replied has the item's floor.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from collabsim.episode import Final, Output, RunError
from collabsim.errors import ProtocolError
from collabsim.item import Item, Score, Verdict


def as_final(value: Any, name: str = "this protocol") -> Final:
    """A protocol's `final` in canonical form. Raises `ProtocolError` for anything but texts with weights summing to 1."""
    try:
        final = tuple(entry if type(entry) is Output else Output(*entry) for entry in value)
        sound = all(isinstance(entry.text, str) and entry.weight > 0 for entry in final)
    except TypeError:
        final, sound = (), False
    if not sound or (final and abs(sum(entry.weight for entry in final) - 1) > 1e-6):
        raise ProtocolError(
            f"{name}: expected state['final'] = ((text, weight), ...) with positive weights that sum to 1, got {value!r}"
        )
    return final


class Judgement(NamedTuple):
    """The outcome of a final output, and the reasons for it."""

    outcome: float | None
    """In [0, 1]; None when scoring itself failed."""
    verdict: Verdict | None
    error: RunError | None
    scores: tuple[Score, ...] = ()
    """One a text of the final output."""


def judge(item: Item, final: Final, *, spoke: bool) -> Judgement:
    """Outcome, verdict, scoring error and scores of a final output."""
    if not final:
        return Judgement(0.0, "unparsed", None) if spoke else Judgement(item.floor, None, None)
    scores = tuple(item.score(output.text, output.finish) for output in final)
    for score in scores:
        if score.score is None:
            return Judgement(None, None, RunError("ScoringError", score.reason, "scorer"), scores)
    outcome = sum(output.weight * (score.score or 0.0) for output, score in zip(final, scores, strict=True))
    verdicts = {score.verdict for score in scores}
    verdict: Verdict = scores[0].verdict if len(verdicts) == 1 else "partial"
    return Judgement(min(outcome, 1.0), verdict, None, scores)
