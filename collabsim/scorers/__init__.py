"""Scorers: how replies of each kind are read and compared with their golds.

In: a reply and an item. Out: a `Score`. One scorer per item serves votes, rewards and reports. A new kind of answer is one
subclass of `AnswerScorer` and one line under `[project.entry-points."collabsim.kinds"]`, here or in another package; the
door loads none of them before it is asked for. Rules for reading replies are frozen in `choice` and `mathematics`; see there.
"""

from collabsim.scorers.kinds import inferred_kind, registered_kinds, scorer_for
from collabsim.scorers.reading.scoring import NO_ANSWER, AnswerScorer, Extraction, accepted_golds, why_unparsed
from collabsim.scorers.reading.text import final_part, readable

__all__ = [
    "NO_ANSWER",
    "AnswerScorer",
    "Extraction",
    "accepted_golds",
    "final_part",
    "inferred_kind",
    "readable",
    "registered_kinds",
    "scorer_for",
    "why_unparsed",
]
