"""What a system and its seats are worth, before and after a training and on dev during it.

In: a system with frozen weights in every seat, items, a seed that is always the same. Out: outcomes per item and the
values of a sweep. Every run meets the same partner samples each time (common random numbers), so that two evaluations are
compared item by item. Left out on purpose: choosing anything by the task's items; only dev is looked at more than once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from collabsim.coalitions import masks
from collabsim.coalitions.intervals import mean_interval
from collabsim.coalitions.plan import make_plan
from collabsim.coalitions.planned_runs import PlannedRuns
from collabsim.coalitions.players import Players
from collabsim.coalitions.table import GameTable
from collabsim.coalitions.valuation import valuate
from collabsim.episode import Episode
from collabsim.errors import MissingOutcomesError
from collabsim.item import Item
from collabsim.system.execute import CONCURRENCY, FinishedRun, RunRequest, execute, run_all
from collabsim.system.system import System
from collabsim.tasks import Task


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Outcomes per item, in the order of the items."""

    system: tuple[float, ...]
    individual: tuple[float, ...] | None
    """The learner's own answers; None for a helper, which has none."""
    values: dict[str, Any] | None = None
    """What every player is worth, as in `values.json`."""

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


async def score(
    system: System, items: Sequence[Item], seed: int, *, concurrency: int = CONCURRENCY
) -> tuple[float, ...]:
    """Outcomes of the whole system, [items]. Raises `MissingOutcomesError` when a run failed."""
    return await _outcomes(system, (RunRequest(item, run_seed=seed) for item in items), concurrency)


async def evaluate(
    system: System, task: Task, learner: str, seed: int, *, method: str = "auto", concurrency: int = CONCURRENCY
) -> Evaluation:
    """The system, the learner alone, and (unless `method` is none) every player's value, on the task's items.

    The players are those of a sweep of the same system. Raises `MissingOutcomesError` when a run failed; what was
    generated is in the store, so the next try is short.
    """
    if method == "none":
        outcomes = await score(system, task.items, seed, concurrency=concurrency)
        return Evaluation(outcomes, await _own(system, task, learner, seed, concurrency))
    players = Players.of_system(system)
    plan = make_plan(method, len(players), [item.id for item in task.items], seed=seed)
    runs = PlannedRuns(system, task, plan, players)
    table, alone = await _fill(runs, concurrency)
    values = valuate(table, alone, plan, players, system=system, task=task)
    together = tuple(table.column(masks.full(len(players))).tolist())
    if learner in runs.seats:
        own: tuple[float, ...] | None = tuple(alone.column(1 << runs.seats.index(learner)).tolist())
    else:  # a helper, or a seat behind players that are nodes
        own = await _own(system, task, learner, seed, concurrency)
    return Evaluation(together, own, values)


async def _fill(runs: PlannedRuns, concurrency: int) -> tuple[GameTable, GameTable]:
    """The outcomes of all runs: of the coalitions, and of the seats by themselves."""
    tables = runs.tables()
    failed: list[Episode] = []

    def keep(finished: FinishedRun) -> None:
        run, episode = finished.request.key, finished.episode
        if episode.outcome is None:
            failed.append(episode)
        else:
            tables[run.kind].put(run.item, run.mask, episode.outcome, episode.verdict)

    await execute(runs.system, map(runs.request, runs), keep, concurrency=concurrency)
    if failed:
        raise _missing(failed[0])
    return tables["coalition"], tables["alone"]


async def _own(system: System, task: Task, learner: str, seed: int, concurrency: int) -> tuple[float, ...] | None:
    """The learner's own answers; None for a helper, which has none."""
    if learner not in system.pool:
        return None
    return await _outcomes(system, (RunRequest(item, seat=learner, run_seed=seed) for item in task.items), concurrency)


async def _outcomes(system: System, requests: Iterable[RunRequest], concurrency: int) -> tuple[float, ...]:
    """Outcomes in the order of the requests."""
    outcomes = []
    for run in await run_all(system, requests, concurrency=concurrency):
        if run.episode.outcome is None:
            raise _missing(run.episode)
        outcomes.append(run.episode.outcome)
    return tuple(outcomes)


def _missing(episode: Episode) -> MissingOutcomesError:
    error = episode.error
    reason = f"{error.kind}: {error.message}" if error else "unknown"
    return MissingOutcomesError(
        f"an evaluation run on item {episode.item_id} has no outcome ({reason}); run the same command with --resume"
    )
