"""Rates reported beside every accuracy: unreadable answers, truncated replies, and the score of a blind guess.

In: complete tables of a sweep. Out: rates in [0, 1] for the system, for every seat alone and for every coalition of `v`, and
a sentence for each of them that makes the accuracies doubtful. Left out on purpose: verdicts of single answers; those
are in the run folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from collabsim.coalitions import masks
from collabsim.coalitions.plan import Plan
from collabsim.coalitions.table import GameTable
from collabsim.tasks.option_order import gold_histogram

if TYPE_CHECKING:
    from collabsim.tasks import Task

UNREADABLE = 0.5
"""Share of unparsed answers above which an accuracy measures form more than knowledge."""


def answer_rates(table: GameTable, alone: GameTable, plan: Plan, task: Task) -> dict[str, Any]:
    """Unparsed and truncated shares of `system` (all players) and of each seat alone, of each coalition, and chance."""
    everyone = masks.full(len(table.players))
    items = [task.item(item) for item in table.item_ids]
    seats = list(enumerate(alone.players))
    return {
        "unparsed": {
            "system": table.rate("unparsed", everyone),
            **{seat: alone.rate("unparsed", 1 << place) for place, seat in seats},
        },
        "truncated": {
            "system": table.cut_rate(everyone),
            **{seat: alone.cut_rate(1 << place) for place, seat in seats},
        },
        "chance": sum(item.chance for item in items) / len(items),
        "v": {
            masks.label(table.players, mask): {
                "unparsed": table.rate("unparsed", mask),
                "truncated": table.cut_rate(mask),
            }
            for mask in plan.common_masks()
        },
    }


def warnings(rates: Mapping[str, Any], task: Task) -> list[str]:
    """Sentences about what makes the accuracies doubtful."""
    sentences = [
        f"{share:.0%} of the answers of {name} could not be read (truncated: {rates['truncated'][name]:.0%}); compare "
        "what was asked with what came: collabsim report DIR --answers unparsed"
        for name, share in rates["unparsed"].items()
        if share > UNREADABLE
    ]
    golds = gold_histogram(task.items)
    if golds.flagged:
        sentences.append(
            f"{golds.share:.0%} of the golds are {golds.majority}: always answering {golds.majority} scores as much; "
            "set task.shuffle_options: true"
        )
    return sentences
