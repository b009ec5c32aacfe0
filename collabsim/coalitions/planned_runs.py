"""The runs of a sweep: the plan's coalitions and every seat's own answer, in the best order for making them.

In: a system, a task, a plan, the players. Out: `PlannedRun`s, lazily, since a large exact sweep has millions; each becomes a
`RunRequest`, and its outcome has a place in one of two tables. A sweep and the evaluations of a training share them. Left
out on purpose: making the runs (`system.execute`), and recording them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from collabsim.coalitions.outcomes import Kind
from collabsim.coalitions.plan import Plan
from collabsim.coalitions.players import Players
from collabsim.coalitions.table import GameTable
from collabsim.system.execute import RunRequest
from collabsim.system.system import System

if TYPE_CHECKING:
    from collabsim.tasks import Task


class PlannedRun(NamedTuple):
    """One run to be made: a coalition of players, or a seat by itself outside the protocol."""

    kind: Kind
    item: str
    mask: int
    """Bit i is player i, or seat i of `PlannedRuns.seats` for a seat by itself."""


@dataclass(frozen=True)
class PlannedRuns:
    """All runs that a plan needs."""

    system: System
    task: Task
    plan: Plan
    players: Players

    def __iter__(self) -> Iterator[PlannedRun]:
        """Item by item, or (when the protocol makes something large for each coalition) coalition by coalition."""
        if self.system.protocol.per_coalition:
            yield from self._by_coalition()
            return
        for item in self.task.items:
            for mask in self.plan.coalitions[item.id]:
                yield PlannedRun("coalition", item.id, mask)
            for seat in range(len(self.seats)):
                yield PlannedRun("alone", item.id, 1 << seat)

    def _by_coalition(self) -> Iterator[PlannedRun]:
        for seat in range(len(self.seats)):
            for item in self.task.items:
                yield PlannedRun("alone", item.id, 1 << seat)
        items: dict[int, list[str]] = {}
        for item in self.task.items:
            for mask in self.plan.coalitions[item.id]:
                items.setdefault(mask, []).append(item.id)
        for mask in sorted(items):
            for name in items[mask]:
                yield PlannedRun("coalition", name, mask)

    def __len__(self) -> int:
        return len(self.plan) + len(self.seats) * len(self.task.items)

    @cached_property
    def seats(self) -> tuple[str, ...]:
        """The seats whose own answers are asked for: those of all players that have some."""
        needed = {seat for name in self.players.names for seat in self.players.own_seats(name)}
        return tuple(seat for seat in self.system.pool if seat in needed)

    def tables(self) -> dict[Kind, GameTable]:
        """Empty tables for the outcomes of the coalitions and of the seats by themselves."""
        ids = [item.id for item in self.task.items]
        return {"coalition": GameTable(self.players.names, ids), "alone": GameTable(self.seats, ids)}

    def missing(self, tables: Mapping[Kind, GameTable]) -> Iterator[PlannedRun]:
        """The runs without an outcome in `tables`: what a resumed sweep still has to make. Lazy, as the runs are."""
        return (run for run in self if not tables[run.kind].has(run.item, run.mask))

    def request(self, run: PlannedRun) -> RunRequest:
        """The description of a run, with the run as its key."""
        item, seed = self.task.item(run.item), self.plan.seed
        if run.kind == "alone":
            return RunRequest(item, seat=self.seats[run.mask.bit_length() - 1], run_seed=seed, key=run)
        return RunRequest(item, self.players.present(run.mask), run_seed=seed, key=run)
