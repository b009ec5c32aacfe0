"""Rollouts: groups of runs of the live system, with the learner's exact tokens.

In: a system, a model for the learner's seat, items with their visits, and what varies within a group. Out: a `Group` of G
runs for every visit and term. The runs go through the same graph and the same `ask` as any other run; partners are served
by the generation store, the learner never is. Failed runs are data. Left out on purpose: advantages, losses, weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, groupby
from typing import TYPE_CHECKING, cast

from collabsim.episode import Episode, Reply
from collabsim.errors import ConfigError
from collabsim.foreign.calls import require_paired
from collabsim.system.execute import CONCURRENCY, FinishedRun, RunRequest, Work, execute
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
    """Raises `ConfigError` when the learner is no seat of the system, is part of every coalition while the objective or the
    coalitions need a player, or does not sample from its full distribution."""
    helper = plan.learner in system.helpers
    if not helper:
        system.pool.check(plan.learner)
    check_sampling({**system.pool, **system.helpers}[plan.learner].sampling)
    if plan.learner in system.players:
        return
    # A seat behind nodes that are the players still has answers of its own.
    apart = [term for term, _ in plan.objective.terms if term == "leave_one_out" or (helper and term != "system")]
    if apart or plan.coalition != "full":
        what = f"objective {plan.objective.name}" if apart else f"coalition {plan.coalition}"
        kind = "helper" if helper else f"seat and no player (these are {', '.join(system.players)})"
        remedy = "make it a seat of the pool" if helper else "name it in players"
        raise ConfigError(
            f"train.seat: {plan.learner!r} is a {kind}, part of every coalition, and has no {what}; "
            f"train it with objective: system and coalition: full, or {remedy}"
        )


async def collect(
    system: System, model: BaseChatModel, visits: Sequence[Visit], plan: RolloutPlan, *, concurrency: int = CONCURRENCY
) -> list[Group]:
    """One group for every visit and term of the objective, in that order; at most `concurrency` samples are made at once.

    `system` has the partners' own store; `model` fills the learner's seat. Raises the errors that would meet every run
    alike (`running.ABORTS`), among them `ConfigError` for sampling that cannot be trained on.
    """
    check_plan(plan, system)
    live = replace(system.replace(plan.learner, model), store=RolloutStore(system.store, model))
    rollouts = [_Rollout(live, visit, term, weight, plan) for visit in visits for term, weight in plan.objective.terms]

    def keep(finished: FinishedRun) -> None:
        rollout, pair = finished.request.key
        rollout.keep(pair, finished)

    await execute(live, chain.from_iterable(rollout.work() for rollout in rollouts), keep, concurrency=concurrency)
    return [cast("Group", rollout.group) for rollout in rollouts]


class _Rollout:
    """The making of one group."""

    def __init__(self, system: System, visit: Visit, term: Term, weight: float, plan: RolloutPlan) -> None:
        self.system, self.visit, self.term, self.weight, self.plan = system, visit, term, weight, plan
        self.seed = visit_seed(plan.seed, visit.number, visit.attempt)
        self.present = draw_coalition(
            plan.coalition, system.players, plan.learner, plan.seed, visit.item.id, visit.number
        )
        # A learner's own answer meets no partner.
        self.wanted = pairs("shared" if term == "individual" else plan.noise, plan.group, plan.draws)
        self.outcomes: dict[Pair, Outcome] = {}
        self.baseline: dict[int, float | None] = dict.fromkeys(sorted({pair.draw for pair in self.wanted}), 0.0)
        self.left = len(self.wanted) + (len(self.baseline) if term == "leave_one_out" else 0)
        self.counts = Counts()
        self.group: Group | None = None
        """There when all its runs have ended."""

    def work(self) -> Iterator[Work]:
        """All runs of one sample of the learner together, for it is generated once; then the runs without the learner."""
        for _, own in groupby(self.wanted, key=lambda pair: pair.sample):
            yield tuple(map(self.with_learner, own))
        if self.term == "leave_one_out":
            yield from map(self.without_learner, self.baseline)

    def with_learner(self, pair: Pair) -> RunRequest:
        """The learner's sample against one partner draw."""
        item, learner = self.visit.item, self.plan.learner
        return RunRequest(
            item,
            self.present,
            seat=learner if self.term == "individual" else None,
            run_seed=self.seed,
            replica=pair.draw,
            replicas={learner: pair.sample},
            recorder=partial(LearnerRecorder, learner, item),
            key=(self, pair),
        )

    def without_learner(self, draw: int) -> RunRequest:
        """The same system without the learner."""
        present = frozenset(self.system.players) if self.present is None else self.present
        return RunRequest(
            self.visit.item, present - {self.plan.learner}, run_seed=self.seed, replica=draw, key=(self, draw)
        )

    def keep(self, which: Pair | int, finished: FinishedRun) -> None:
        """Take what a run came to. `which`: the pair of a run with the learner, the draw of one without.

        Raises what `assemble` raises when this was the group's last run, and `ProtocolError` for calls past the seats.
        """
        episode = finished.episode
        if isinstance(which, Pair):
            recorder = cast("LearnerRecorder", finished.recorder)
            self.outcomes[which] = Outcome(which.sample, which.draw, episode.outcome, recorder.rows, episode.error)
            counts = self._count(episode, recorder.own)
        else:
            self.baseline[which] = episode.outcome
            counts = Counts(without_learner=1, failed=episode.failed)
        self.counts += counts + cost(episode.calls, self.plan.learner)
        self.left -= 1
        if not self.left:
            self.group = self._group()

    def _count(self, episode: Episode, own: Reply | None) -> Counts:
        """What became of the learner's words in a run."""
        if self.term != "individual":
            require_paired(episode)
        learner = self.plan.learner
        return Counts(
            runs=1,
            failed=episode.failed,
            outvoted=own is not None and not episode.failed and outvoted(self.visit.item, own, episode.final),
            truncated=sum(
                call.finish == "length" for call in episode.calls if call.seat == learner and not call.reused
            ),
        )

    def _group(self) -> Group:
        runs = assemble([self.outcomes[pair] for pair in self.wanted], self.plan.group, self.baseline)
        identity = GroupId(self.visit.item.id, self.visit.number, self.visit.attempt, self.term)
        return Group(identity, self.weight, runs, self.counts)
