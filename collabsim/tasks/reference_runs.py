"""The self-test of programs: their reference solutions are run on their own tests.

In: items, of which those are tested whose scorer runs programs. Out: those whose reference fails. Running every reference of
a large set takes minutes, so a sample is run, and all of them only when one of the sample fails. Items without a reference
(MoCo's files have none) and machines on which no program may run are left untested, and that is counted. Left out on
purpose: the sandbox.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from collabsim.errors import PrerequisiteError
from collabsim.item import Item

SelfTest = Literal["sample", "all", "none"]
SAMPLE = 8
"""Reference solutions that are run at load."""


class References(NamedTuple):
    """What running reference solutions showed."""

    failing: frozenset[str]
    """Ids of items whose reference is not right."""
    untested: int
    """Programs of which nothing is known: no reference, or no sandbox on this machine."""


def run_references(items: Sequence[Item], how: SelfTest, prompt: str | None = None) -> References:
    """Run reference solutions of the items, which come in an order that says nothing about them."""
    programs = [item for item in items if item.scorer.waits]
    known = [item for item in programs if item.gold_text.strip()]
    if how == "none" or not known:
        return References(frozenset(), len(programs))
    first = known if how == "all" else known[:SAMPLE]
    try:
        failing = {item.id for item in first if _fails(item, prompt)}
        if failing:
            failing |= {item.id for item in known[len(first) :] if _fails(item, prompt)}
    except PrerequisiteError:
        return References(frozenset(), len(programs))
    return References(frozenset(failing), len(programs) - len(known))


def _fails(item: Item, prompt: str | None) -> bool:
    """Whether the reference was judged and is not right; a sandbox that breaks judges nothing."""
    score = item.score(item.scorer.asked_form(item.gold_text, prompt)).score
    return score is not None and score != 1.0
