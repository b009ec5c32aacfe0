"""A coalition sweep: evaluate the plan, keep every outcome, sum up.

In: a system, a task, a method. Out: a `SweepResult`, and a run folder that holds all of it. Stopping at any moment loses
nothing that was committed; the same call goes on from there. Failed runs are kept as failures and tried again by the next
call; values are refused while any outcome is missing (or their items are dropped everywhere, if told so).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from collabsim.coalitions.masks import label, parse_label
from collabsim.coalitions.outcomes import Cost, Kind, OutcomeLog, was_cut
from collabsim.coalitions.plan import Plan, make_plan
from collabsim.coalitions.players import Players
from collabsim.coalitions.table import GameTable
from collabsim.coalitions.valuation import valuate
from collabsim.episode import Episode, RunError
from collabsim.errors import MissingOutcomesError
from collabsim.loop import run_sync
from collabsim.run_folder import FITTED_FILE, OUTCOMES_FILE, VALUES_FILE, RunFolder, read_json, write_json
from collabsim.system.fitted import Fitted
from collabsim.system.fitting import afit, check_dev_items, fit_inputs
from collabsim.system.needs import check_needs
from collabsim.system.system import System

if TYPE_CHECKING:
    from collabsim.tasks import Task

OnMissing = Literal["refuse", "drop_items"]


class Evaluation(NamedTuple):
    """One run to be made: a coalition of players, or a seat by itself outside the protocol."""

    kind: Kind
    item: str
    mask: int


class Progress:
    """What a sweep tells while it runs; the base class says nothing."""

    def start(self, total: int, done: int) -> None:
        """Called once, with the number of runs in the plan and of those that are there already."""

    def advance(self, episode: Episode) -> None:
        """Called after every run."""


@dataclass(frozen=True)
class SweepResult:
    """What a sweep found."""

    values: dict[str, Any]
    """The content of `values.json`."""
    table: GameTable = field(repr=False)
    out: Path | None = None


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
        fitted = await afit(self.system, self.task.dev, seed=self.plan.seed)
        if path and self.task.dev:
            write_json(path, asdict(fitted))
        return fitted

    def evaluations(self) -> Iterator[Evaluation]:
        """The plan's coalitions and every seat's own answer: item by item, or (when the protocol makes something large for
        each coalition) coalition by coalition."""
        if self.system.protocol.per_coalition:
            yield from self._by_coalition()
            return
        for item in self.task.items:
            for mask in self.plan.coalitions[item.id]:
                yield Evaluation("coalition", item.id, mask)
            for seat in range(len(self.own_seats)):
                yield Evaluation("alone", item.id, 1 << seat)

    def _by_coalition(self) -> Iterator[Evaluation]:
        for seat in range(len(self.own_seats)):
            for item in self.task.items:
                yield Evaluation("alone", item.id, 1 << seat)
        items: dict[int, list[str]] = {}
        for item in self.task.items:
            for mask in self.plan.coalitions[item.id]:
                items.setdefault(mask, []).append(item.id)
        for mask in sorted(items):
            for name in items[mask]:
                yield Evaluation("coalition", name, mask)

    @cached_property
    def own_seats(self) -> tuple[str, ...]:
        """The seats whose own answers are asked for: those of all players that have some."""
        needed = {seat for name in self.players.names for seat in self.players.own_seats(name)}
        return tuple(seat for seat in self.system.pool if seat in needed)

    def _sum_up(self, state: _State, seconds: float) -> SweepResult:
        kept = state.complete_items()
        if self.folder:
            self.folder.seconds = seconds = seconds + self.folder.seconds
            self.folder.note({"failed_runs": len(state.failures)})
        if state.failures and (self.on_missing == "refuse" or not kept):
            raise MissingOutcomesError(state.missing_message())
        values = valuate(
            state.table.only(kept),
            state.alone.only(kept),
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
        return SweepResult(values, state.table.only(kept), self.folder.path if self.folder else None)


class _State:
    """The mutable side of a running sweep: tables, failures, what is left to do."""

    def __init__(self, sweep: Sweep, system: System, log: OutcomeLog) -> None:
        self.sweep, self.system, self.log = sweep, system, log
        self.seats = sweep.own_seats
        ids = [item.id for item in sweep.task.items]
        self.table = GameTable(sweep.players.names, ids)
        self.alone = GameTable(self.seats, ids)
        self.failures: dict[Evaluation, RunError | None] = {}
        self.cost = Cost()
        self.unpaired = log.unpaired()
        """Calls that went past the seats, in all sessions."""
        known = set(ids)
        for row in log.rows():
            if row.outcome is not None and row.item in known:
                table = self._table(row.kind)
                mask = parse_label(table.players, row.coalition)
                table.put(row.item, mask, row.outcome, row.verdict, cut=row.cut)

    def _table(self, kind: Kind) -> GameTable:
        return self.table if kind == "coalition" else self.alone

    async def evaluate(self) -> None:
        total = len(self.sweep.plan) + len(self.seats) * len(self.sweep.task.items)
        missing = sum(1 for _ in self._missing())
        self.sweep.progress.start(total, total - missing)
        queue = self._missing()
        workers = min(self.sweep.concurrency, missing)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(workers):
                    group.create_task(self._work(queue))
        except BaseExceptionGroup as errors:
            raise _first(errors) from None
        finally:
            self.log.flush()
        self.cost = self.log.cost() or self.cost

    def _missing(self) -> Iterator[Evaluation]:
        """What has no outcome yet; never held as a list, for a large exact sweep has millions of runs."""
        for entry in self.sweep.evaluations():
            if not self._table(entry.kind).has(entry.item, entry.mask):
                yield entry

    async def _work(self, queue: Iterator[Evaluation]) -> None:
        for evaluation in queue:
            self._keep(evaluation, await self._run(evaluation))
            # A run served from memory never waits; without this pause one worker would do all of them in one go.
            await asyncio.sleep(0)

    async def _run(self, evaluation: Evaluation) -> Episode:
        item = self.sweep.task.item(evaluation.item)
        seed = self.sweep.plan.seed
        if evaluation.kind == "alone":
            seat = self.seats[evaluation.mask.bit_length() - 1]
            return await self.system.alone_on(item, seat, run_seed=seed)
        return await self.system.arun(item, self.sweep.players.present(evaluation.mask), run_seed=seed)

    def _keep(self, evaluation: Evaluation, episode: Episode) -> None:
        table = self._table(evaluation.kind)
        if episode.outcome is None:
            self.failures[evaluation] = episode.error
        else:
            cut = was_cut(episode)
            table.put(evaluation.item, evaluation.mask, episode.outcome, episode.verdict, cut=cut)
        self.log.record(evaluation.kind, label(table.players, evaluation.mask), episode)
        self.cost = self.cost.plus(evaluation.kind, episode)
        self.unpaired += sum(not call.paired for call in episode.calls)
        self.sweep.progress.advance(episode)

    def complete_items(self) -> list[str]:
        """Items without any failed run."""
        failed = {evaluation.item for evaluation in self.failures}
        return [item.id for item in self.sweep.task.items if item.id not in failed]

    def missing_message(self) -> str:
        evaluation, error = next(iter(self.failures.items()))
        items = len({entry.item for entry in self.failures})
        reason = f"{error.kind}: {error.message}" if error else "unknown"
        table = self._table(evaluation.kind)
        return (
            f"{len(self.failures)} runs on {items} of {len(self.sweep.task.items)} items have no outcome (first: "
            f"{label(table.players, evaluation.mask)!r} on item {evaluation.item}, {reason}). The rest is kept: run the "
            "same command again to retry them, or set sweep.on_missing=drop_items to leave these items out everywhere"
        )


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    inner = errors.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner


def plan_sweep(
    system: System,
    task: Task,
    *,
    method: str = "auto",
    seed: int = 0,
    players: Literal["seats", "models"] = "seats",
    budget: int | None = None,
    out: Path | str | None = None,
    identity: dict[str, Any] | None = None,
    concurrency: int = 100,
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


async def asweep(system: System, task: Task, **settings: Any) -> SweepResult:
    """`sweep` for async code; the same arguments."""
    return await plan_sweep(system, task, **settings).arun()


def sweep(system: System, task: Task, **settings: Any) -> SweepResult:
    """Evaluate coalitions of the system's players on the task and estimate what each player is worth.

    Settings: `method` (`auto`, `exact`, `loo`, `permutation`, `shapiq:NAME`), `seed`, `players` (`seats`, `models`),
    `budget`, `out` (run folder; None keeps nothing on disk), `concurrency` (runs in flight), `on_missing`, `progress`.
    Works in scripts and notebooks. Raises `ConfigError` for settings that cannot be meant and `MissingOutcomesError`
    when runs failed; all other outcomes are then kept, and the same call retries only what failed.
    """
    return run_sync(asweep(system, task, **settings))
