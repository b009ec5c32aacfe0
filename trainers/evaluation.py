"""What a system and its seats are worth, before and after a training and on dev during it.

In: a system with frozen weights in every seat, items, a seed that is always the same. Out: outcomes per item and the
values of a sweep. Every run meets the same partner samples each time (common random numbers), so that two evaluations are
compared item by item. Left out on purpose: choosing anything by the task's items; only dev is looked at more than once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from collabsim.coalitions import masks
from collabsim.coalitions.intervals import mean_interval
from collabsim.coalitions.plan import make_plan
from collabsim.coalitions.players import Players
from collabsim.coalitions.table import GameTable
from collabsim.coalitions.valuation import valuate
from collabsim.episode import Episode
from collabsim.errors import MissingOutcomesError
from collabsim.item import Item
from collabsim.system.system import System
from collabsim.tasks import Task


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Outcomes per item, in the order of the items."""

    system: tuple[float, ...]
    individual: tuple[float, ...] | None
    """The learner's own answers; None for a helper, which has none."""
    values: dict[str, Any] | None = None
    """What every seat is worth, as in `values.json`."""

    def summary(self) -> dict[str, Any]:
        """`system`, `individual` and `compositional`, as `result.json` has them."""
        scores = {"system": self.system, "individual": self.individual}
        summary: dict[str, Any] = {name: None if got is None else estimate(got) for name, got in scores.items()}
        values = self.values or {}
        summary["compositional"] = values.get("shapley") or values.get("leave_one_out")
        return summary

    def as_json(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "system": list(self.system),
            "individual": None if self.individual is None else list(self.individual),
            "values": self.values,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Evaluation:
        """What `as_json` gave."""
        own = data["individual"]
        return cls(tuple(data["system"]), None if own is None else tuple(own), data["values"])


def estimate(scores: Sequence[float], support: tuple[float, float] = (0.0, 1.0)) -> dict[str, Any]:
    """The mean of scores with its standard error and 95% interval for the population of items."""
    return asdict(mean_interval(np.asarray(scores, dtype=np.float64), support=support))


def gain(before: Sequence[float], after: Sequence[float]) -> dict[str, Any]:
    """The mean paired difference, item by item, with its interval."""
    return estimate([late - early for early, late in zip(before, after, strict=True)], support=(-1.0, 1.0))


async def score(system: System, items: Sequence[Item], seed: int, *, concurrency: int = 100) -> tuple[float, ...]:
    """Outcomes of the whole system, [items]. Raises `MissingOutcomesError` when a run failed."""
    return tuple(await _outcomes([system.arun(item, run_seed=seed) for item in items], concurrency))


async def evaluate(
    system: System, task: Task, learner: str, seed: int, *, method: str = "auto", concurrency: int = 100
) -> Evaluation:
    """The system, the learner alone, and (unless `method` is none) every seat's value, on the task's items.

    Raises `MissingOutcomesError` when a run failed; what was generated is in the store, so the next try is short.
    """
    if method == "none":
        outcomes = await score(system, task.items, seed, concurrency=concurrency)
        own = await _alone(system, task.items, learner, seed, concurrency) if learner in system.pool else None
        return Evaluation(outcomes, own)
    players = Players.of(system.pool)
    plan = make_plan(method, len(players), [item.id for item in task.items], seed=seed)
    table = GameTable(players.names, [item.id for item in task.items])
    alone = GameTable(system.pool.seats, [item.id for item in task.items])
    await _fill(table, [(item, mask) for item, mask in plan], system, task, players, seed, concurrency)
    for place, seat in enumerate(system.pool):
        runs = [system.alone_on(item, seat, run_seed=seed) for item in task.items]
        for item, episode in zip(task.items, await episodes(runs, concurrency), strict=True):
            alone.put(item.id, 1 << place, _outcome(episode), episode.verdict)
    values = valuate(table, alone, plan, players, system=system, task=task)
    own = None
    if learner in system.pool:
        own = tuple(alone.column(1 << system.pool.seats.index(learner)).tolist())
    return Evaluation(tuple(table.column(masks.full(len(players))).tolist()), own, values)


async def _fill(
    table: GameTable,
    wanted: Sequence[tuple[str, int]],
    system: System,
    task: Task,
    players: Players,
    seed: int,
    concurrency: int,
) -> None:
    runs = [system.arun(task.item(item), players.present(mask), run_seed=seed) for item, mask in wanted]
    for (item, mask), episode in zip(wanted, await episodes(runs, concurrency), strict=True):
        table.put(item, mask, _outcome(episode), episode.verdict)


async def _alone(system: System, items: Sequence[Item], learner: str, seed: int, concurrency: int) -> tuple[float, ...]:
    return tuple(await _outcomes([system.alone_on(item, learner, run_seed=seed) for item in items], concurrency))


async def _outcomes(runs: Sequence[Coroutine[Any, Any, Episode]], concurrency: int) -> list[float]:
    return [_outcome(episode) for episode in await episodes(runs, concurrency)]


async def episodes(runs: Sequence[Coroutine[Any, Any, Episode]], concurrency: int) -> list[Episode]:
    """What the runs come to, in their order, so many at a time."""
    gate = asyncio.Semaphore(concurrency)

    async def one(run: Coroutine[Any, Any, Episode]) -> Episode:
        async with gate:
            return await run

    return await asyncio.gather(*map(one, runs))


def _outcome(episode: Episode) -> float:
    if episode.outcome is None:
        error = episode.error
        reason = f"{error.kind}: {error.message}" if error else "unknown"
        raise MissingOutcomesError(
            f"an evaluation run on item {episode.item_id} has no outcome ({reason}); run the same command with --resume"
        )
    return episode.outcome
