"""A coalition sweep: evaluate the plan, keep every outcome, sum up.

In: a system, a task, a method. Out: a `SweepResult`, and a run folder that holds all of it. Stopping at any moment loses
nothing that was committed; the same call goes on from there. Failed runs are kept as failures and tried again by the next
call; values are refused while any outcome is missing (or their items are dropped everywhere, if told so).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

from collabsim.arguments import Count, checked, same_arguments
from collabsim.coalitions.masks import label, parse_label
from collabsim.coalitions.outcomes import Cost, OutcomeLog, was_cut
from collabsim.coalitions.plan import Plan, make_plan
from collabsim.coalitions.planned_runs import PlannedRun, PlannedRuns
from collabsim.coalitions.players import Players
from collabsim.coalitions.progress import Progress
from collabsim.coalitions.result import SweepResult
from collabsim.coalitions.valuation import valuate
from collabsim.episode import RunError
from collabsim.errors import MissingOutcomesError
from collabsim.loop import run_sync
from collabsim.run_folder import FITTED_FILE, OUTCOMES_FILE, VALUES_FILE, RunFolder, read_json, write_json
from collabsim.system.execute import FinishedRun, execute
from collabsim.system.fitted import Fitted
from collabsim.system.fitting import afit, check_dev_items, fit_inputs
from collabsim.system.needs import check_needs
from collabsim.system.system import System
from collabsim.tasks import Task

OnMissing = Literal["refuse", "drop_items"]


@dataclass(frozen=True)
class Sweep:
    """A sweep that is fully planned, before and while it runs."""

    system: System
    task: Task
    plan: Plan
    players: Players
    folder: RunFolder | None = None
    concurrency: int = 100
    on_missing: OnMissing = "refuse"
    progress: Progress = field(default_factory=Progress)

    async def arun(self) -> SweepResult:
        """Make all missing runs and sum up. Raises `MissingOutcomesError` when runs failed and `on_missing` is refuse."""
        started = perf_counter()
        if self.folder:
            self.folder.open()
        self.system.study([*self.task.items, *self.task.dev])
        system = replace(self.system, fitted=await self._fitted())
        log = OutcomeLog(self.folder.file(OUTCOMES_FILE) if self.folder else None, system.store)
        try:
            state = _State(self, system, log)
            await state.evaluate()
        finally:
            log.close()
        return self._sum_up(state, perf_counter() - started)

    async def _fitted(self) -> Fitted:
        """Read what an earlier session fitted on the same inputs, else fit now."""
        path = self.folder.file(FITTED_FILE) if self.folder else None
        inputs = fit_inputs(self.system, self.task.dev, self.plan.seed)
        kept = read_json(path) if path else None
        if kept is not None and kept["inputs"] == inputs:
            return Fitted(**kept)
        fitted = await afit(self.system, self.task.dev, seed=self.plan.seed, concurrency=self.concurrency)
        if path and self.task.dev:
            write_json(path, asdict(fitted))
        return fitted

    @cached_property
    def runs(self) -> PlannedRuns:
        """The plan's coalitions and every seat's own answer, in the order in which they are made."""
        return PlannedRuns(self.system, self.task, self.plan, self.players)

    def _sum_up(self, state: _State, seconds: float) -> SweepResult:
        kept = state.complete_items()
        if self.folder:
            self.folder.seconds = seconds = seconds + self.folder.seconds
            self.folder.note({"failed_runs": len(state.failures)})
        if state.failures and (self.on_missing == "refuse" or not kept):
            raise MissingOutcomesError(state.missing_message())
        values = valuate(
            state.tables["coalition"].only(kept),
            state.tables["alone"].only(kept),
            self.plan,
            self.players,
            system=state.system,
            task=self.task,
            dropped=len(self.task.items) - len(kept),
        )
        values["paired"] = state.unpaired == 0
        values["cost"] = {**asdict(state.cost), "seconds": round(seconds, 3)}
        if self.folder:
            write_json(self.folder.file(VALUES_FILE), values)
        return SweepResult(values, state.tables["coalition"].only(kept), self.folder.path if self.folder else None)


class _State:
    """The mutable side of a running sweep: tables, failures, what is left to do."""

    def __init__(self, sweep: Sweep, system: System, log: OutcomeLog) -> None:
        self.sweep, self.system, self.log = sweep, system, log
        self.tables = sweep.runs.tables()
        self.failures: dict[PlannedRun, RunError | None] = {}
        self.cost = Cost()
        self.unpaired = log.unpaired()
        """Calls that went past the seats, in all sessions."""
        known = {item.id for item in sweep.task.items}
        for row in log.rows():
            if row.outcome is not None and row.item in known:
                table = self.tables[row.kind]
                mask = parse_label(table.players, row.coalition)
                table.put(row.item, mask, row.outcome, row.verdict, cut=row.cut)

    async def evaluate(self) -> None:
        total = len(self.sweep.runs)
        missing = sum(1 for _ in self.sweep.runs.missing(self.tables))
        self.sweep.progress.start(total, total - missing)
        work = map(self.sweep.runs.request, self.sweep.runs.missing(self.tables))
        try:
            await execute(self.system, work, self._keep, concurrency=self.sweep.concurrency)
        finally:
            self.log.flush()
        self.cost = self.log.cost() or self.cost

    def _keep(self, finished: FinishedRun) -> None:
        run: PlannedRun = finished.request.key
        episode, table = finished.episode, self.tables[run.kind]
        if episode.outcome is None:
            self.failures[run] = episode.error
        else:
            table.put(run.item, run.mask, episode.outcome, episode.verdict, cut=was_cut(episode))
        self.log.record(run.kind, label(table.players, run.mask), episode)
        self.cost = self.cost.plus(run.kind, episode)
        self.unpaired += sum(not call.paired for call in episode.calls)
        self.sweep.progress.advance(episode)

    def complete_items(self) -> list[str]:
        """Items without any failed run."""
        failed = {run.item for run in self.failures}
        return [item.id for item in self.sweep.task.items if item.id not in failed]

    def missing_message(self) -> str:
        run, error = next(iter(self.failures.items()))
        items = len({failed.item for failed in self.failures})
        reason = f"{error.kind}: {error.message}" if error else "unknown"
        players = self.tables[run.kind].players
        return (
            f"{len(self.failures)} runs on {items} of {len(self.sweep.task.items)} items have no outcome (first: "
            f"{label(players, run.mask)!r} on item {run.item}, {reason}). The rest is kept: run the "
            "same command again to retry them, or set sweep.on_missing=drop_items to leave these items out everywhere"
        )


@checked(
    system='System("debate", {"a": model, "b": model}) makes one of a name and a pool',
    task='load_task("reasoning_gym:chain_sum", limit=30) makes one of a name',
    out="name the run folder",
)
def plan_sweep(
    system: System,
    task: Task,
    *,
    method: str = "auto",
    seed: int = 0,
    players: Literal["seats", "models"] = "seats",
    budget: Count | None = None,
    out: Path | str | None = None,
    identity: dict[str, Any] | None = None,
    concurrency: Count = 100,
    on_missing: OnMissing = "refuse",
    progress: Progress | None = None,
) -> Sweep:
    """A sweep, planned and checked against its folder, but not run; nothing is written. Arguments as for `sweep`."""
    check_dev_items(system, task.dev)
    check_needs(system)
    group = Players.of_system(system, players)
    plan = make_plan(method, len(group), [item.id for item in task.items], seed=seed, budget=budget)
    fields = identity or {"method": method, "seed": seed, "players": players, "budget": budget}
    fields = {**fields, "system": system.identity, "items": task.identity}
    return Sweep(
        system=system,
        task=task,
        plan=plan,
        players=group,
        folder=None if out is None else RunFolder(out, fields),
        concurrency=concurrency,
        on_missing=on_missing,
        progress=progress or Progress(),
    )


@same_arguments(plan_sweep)
async def asweep(*given: Any, **settings: Any) -> SweepResult:
    """`sweep` for async code; the same arguments."""
    return await plan_sweep(*given, **settings).arun()


@same_arguments(plan_sweep)
def sweep(*given: Any, **settings: Any) -> SweepResult:
    """Evaluate coalitions of the system's players on the task and estimate what each player is worth.

    Settings: `method` (`auto`, `exact`, `loo`, `permutation`, `shapiq:NAME`), `seed`, `players` (`seats`, `models`),
    `budget`, `out` (run folder; None keeps nothing on disk), `concurrency` (runs in flight), `on_missing`, `progress`.
    Works in scripts and notebooks. Raises `ConfigError` for settings that cannot be meant and `MissingOutcomesError`
    when runs failed; all other outcomes are then kept, and the same call retries only what failed.
    """
    return run_sync(asweep(*given, **settings))
