"""Rollouts: groups of runs of the live system, with the learner's exact tokens.

In: a system, a model for the learner's seat, items with their visits, and what varies within a group. Out: a `Group` of G
runs for every visit and term. The runs go through the same graph and the same `ask` as any other run; partners are served
by the generation store, the learner never is. Failed runs are data. Left out on purpose: advantages, losses, weights.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

from collabsim.context import Recorder
from collabsim.errors import ConfigError
from collabsim.foreign.calls import require_paired
from collabsim.system.system import System

from .groups import assemble, cost, outvoted
from .objectives import CoalitionRule, Noise, Objective, Term, draw_coalition
from .partner_noise import Pair, check_noise, default_noise, pairs, visit_seed
from .recording import LearnerRecorder, RolloutStore
from .records import Counts, Group, GroupId, Outcome, Visit
from .rows import check_sampling

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from .settings import TrainConfig


@dataclass(frozen=True, slots=True)
class RolloutPlan:
    """What is rolled out for every visit."""

    learner: str
    objective: Objective
    group: int
    """G: samples of the learner per visit and term."""
    noise: Noise
    draws: int = 4
    """K: partner draws per visit, when crossed."""
    coalition: CoalitionRule = "full"
    seed: int = 0


def plan_of(config: TrainConfig, system: System) -> RolloutPlan:
    """The plan that the settings describe, for this system. Raises `ConfigError` for noise that the learner cannot have."""
    if config.seat not in system.helpers:
        system.pool.check(config.seat)
    noise = config.noise(default_noise(system, config.seat))
    check_noise(noise, system, config.seat)
    objective = config.rollout_objective()
    return RolloutPlan(config.seat, objective, config.group, noise, config.partner_draws, config.coalition, config.seed)


def check_plan(plan: RolloutPlan, system: System) -> None:
    """Raises `ConfigError` when the learner is no seat of the system, a helper whose objective needs a seat, or does not
    sample from its full distribution."""
    if plan.learner not in system.helpers:
        system.pool.check(plan.learner)
    check_sampling({**system.pool, **system.helpers}[plan.learner].sampling)
    if plan.learner in system.helpers:
        apart = [term for term, _ in plan.objective.terms if term != "system"]
        if apart or plan.coalition != "full":
            what = f"objective {plan.objective.name}" if apart else f"coalition {plan.coalition}"
            raise ConfigError(
                f"train.seat: {plan.learner!r} is a helper, part of every coalition, and has no {what}; "
                "train it with objective: system and coalition: full, or make it a seat of the pool"
            )


async def collect(
    system: System, model: BaseChatModel, visits: Sequence[Visit], plan: RolloutPlan, *, concurrency: int = 100
) -> list[Group]:
    """One group for every visit and term of the objective, in that order; at most `concurrency` samples are made at once.

    `system` has the partners' own store; `model` fills the learner's seat. Raises the errors that would meet every run
    alike (`running.ABORTS`), among them `ConfigError` for sampling that cannot be trained on.
    """
    check_plan(plan, system)
    live = replace(system.replace(plan.learner, model), store=RolloutStore(system.store, model))
    gate = asyncio.Semaphore(concurrency)
    made: list[asyncio.Task[Group]] = []
    try:
        async with asyncio.TaskGroup() as tasks:
            for visit in visits:
                for term, weight in plan.objective.terms:
                    made.append(tasks.create_task(_Rollout(live, visit, term, plan, gate).group(weight)))
    except BaseExceptionGroup as errors:
        raise _first(errors) from None
    return [task.result() for task in made]


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    inner = errors.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner


class _Rollout:
    """The making of one group."""

    def __init__(self, system: System, visit: Visit, term: Term, plan: RolloutPlan, gate: asyncio.Semaphore) -> None:
        self.system, self.visit, self.term, self.plan, self.gate = system, visit, term, plan, gate
        self.seed = visit_seed(plan.seed, visit.number, visit.attempt)
        self.present = draw_coalition(
            plan.coalition, system.pool.seats, plan.learner, plan.seed, visit.item.id, visit.number
        )

    async def group(self, weight: float) -> Group:
        """All runs of the group, and what they come to."""
        # A learner's own answer meets no partner.
        noise = "shared" if self.term == "individual" else self.plan.noise
        wanted = pairs(noise, self.plan.group, self.plan.draws)
        draws = sorted({pair.draw for pair in wanted})
        samples = groupby(wanted, key=lambda pair: pair.sample)
        made = list(chain.from_iterable(await asyncio.gather(*(self.sample(list(own)) for _, own in samples))))
        counts = sum((counted for _, counted in made), Counts())
        baseline: dict[int, float | None] = dict.fromkeys(draws, 0.0)
        if self.term == "leave_one_out":
            for draw, (value, counted) in zip(draws, await asyncio.gather(*map(self.without, draws)), strict=True):
                baseline[draw] = value
                counts += counted
        runs = assemble([outcome for outcome, _ in made], self.plan.group, baseline)
        identity = GroupId(self.visit.item.id, self.visit.number, self.visit.attempt, self.term)
        return Group(identity, weight, runs, counts)

    async def sample(self, own: Sequence[Pair]) -> list[tuple[Outcome, Counts]]:
        """All runs of one sample of the learner: it is generated once, so they pass the gate as one."""
        async with self.gate:
            return await asyncio.gather(*map(self.run, own))

    async def run(self, pair: Pair) -> tuple[Outcome, Counts]:
        """The learner's sample against one partner draw."""
        item, learner = self.visit.item, self.plan.learner
        recorder = LearnerRecorder(learner, item)
        how: dict[str, Any] = {"run_seed": self.seed, "replica": pair.draw, "recorder": recorder}
        how["replicas"] = {learner: pair.sample}
        if self.term == "individual":
            episode = await self.system.alone_on(item, learner, **how)
        else:
            episode = await self.system.arun(item, self.present, **how)
            require_paired(episode)
        own = recorder.own
        counts = Counts(
            runs=1,
            failed=episode.failed,
            outvoted=own is not None and not episode.failed and outvoted(item, own, episode.final),
            truncated=sum(
                call.finish == "length" for call in episode.calls if call.seat == learner and not call.reused
            ),
        )
        outcome = Outcome(pair.sample, pair.draw, episode.outcome, recorder.rows, episode.error)
        return outcome, counts + cost(episode.calls, learner)

    async def without(self, draw: int) -> tuple[float | None, Counts]:
        """The outcome of the same system without the learner."""
        present = (self.system.everyone if self.present is None else self.present) - {self.plan.learner}
        recorder = Recorder()
        async with self.gate:
            episode = await self.system.arun(
                self.visit.item, present, run_seed=self.seed, replica=draw, recorder=recorder
            )
        counts = Counts(without_learner=1, failed=episode.failed)
        return episode.outcome, counts + cost(episode.calls, self.plan.learner)
