"""Batches: the rows of one step, for every objective.

In: the live system, the items, a step. Out: a `Batch`: rows with advantages and what is logged of the runs they come from.
RL rolls out groups and draws those of equal rewards again where asked to; `rft` keeps the learner's own right answers;
`sft` reads golds and rolls out nothing. Left out on purpose: the update.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from collabsim.errors import TrainingError
from collabsim.item import Item
from collabsim.loop import run_sync
from collabsim.system.system import System

from .advantages import Advantages
from .baselines import LIKELIHOOD, gold_rows, right_rows
from .item_order import visits_of_step
from .losses import Loss
from .records import Counts, Example, Group, Visit
from .rollouts import RolloutPlan, collect
from .settings import TrainConfig
from .updates import examples

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


@dataclass(frozen=True, slots=True)
class Batch:
    """The rows that one step trains on, and what is logged of them."""

    rows: list[Example]
    groups: list[Group]
    """Of the last attempt of each visit; none under `sft`."""
    advantages: Advantages
    counts: Counts
    """Of all attempts."""
    resampled: int = 0
    """Groups that were drawn again for lack of a gradient."""

    def metrics(self) -> dict[str, Any]:
        """Means and counts for the log; None where there is nothing to take a mean of."""
        advantages = self.advantages
        sampled = [row for group in self.groups for run in group.runs for row in run.rows]
        tokens = sum(map(len, sampled))
        return {
            "reward": {term: fmean(values) for term, values in sorted(_rewards(self.groups).items()) if values},
            "entropy": -sum(sum(row.logprobs) for row in sampled) / tokens if tokens else None,
            "groups": {
                "all": advantages.groups,
                "informative": advantages.informative,
                "flat": advantages.flat,
                "small": advantages.small,
                "resampled": self.resampled,
            },
            "runs": {"missing": advantages.missing, "uncalled": advantages.uncalled, **asdict(self.counts)},
        }


def _rewards(groups: Sequence[Group]) -> dict[str, list[float]]:
    rewards: dict[str, list[float]] = {}
    for group in groups:
        rewards.setdefault(group.id.term, []).extend(run.reward for run in group.runs if run.reward is not None)
    return rewards


class BatchMaker:
    """Makes the batch of every step, for one objective."""

    def __init__(
        self, system: System, items: Sequence[Item], config: TrainConfig, plan: RolloutPlan, prompt: str | None
    ) -> None:
        self.system, self.items, self.config, self.plan = system, items, config, plan
        self.seat = {**system.pool, **system.helpers}[config.seat]
        self.golds = gold_rows(self.seat, items, prompt) if config.objective == "sft" else {}

    @property
    def divisor(self) -> float:
        """The constant that a step's loss is divided by: all runs of the step, times tokens per run."""
        # Under `norm: run` every run is divided by its own tokens already.
        by_run = self.config.norm == "run" and not self.config.supervised
        tokens = 1 if by_run else self.config.norm_tokens or self.seat.sampling.max_tokens
        runs = 1 if self.config.objective == "sft" else self.config.group
        return float(self.config.items_per_step * runs * tokens)

    def loss_of_rows(self, loss: Loss) -> Loss:
        """The configured loss, or the likelihood for an objective without reward."""
        return LIKELIHOOD if self.config.supervised else loss

    def batch(self, model: BaseChatModel, step: int, loss: Loss, concurrency: int) -> Batch:
        """The rows of a step (counted from 0). Raises `TrainingError` when every run of it failed."""
        visits = self.visits(step)
        if self.config.objective == "sft":
            rows = [self.golds[visit.item.id] for visit in visits]
            return Batch(rows, [], Advantages(()), Counts())
        groups = self.collect(model, visits, concurrency)
        counts, resampled = sum((group.counts for group in groups), Counts()), 0
        for attempt in range(1, self.config.resample + 1):
            flat = [visit for visit in visits if not _varies(_of(groups, visit), loss)]
            if not flat:
                break
            redrawn = self.collect(model, [visit._replace(attempt=attempt) for visit in flat], concurrency)
            counts += sum((group.counts for group in redrawn), Counts())
            resampled += len(redrawn)
            by_group = {(group.id.item, group.id.visit, group.id.term): group for group in redrawn}
            groups = [by_group.get((group.id.item, group.id.visit, group.id.term), group) for group in groups]
        rows, advantages = examples(groups, loss)
        return Batch(
            right_rows(groups) if self.config.objective == "rft" else rows, groups, advantages, counts, resampled
        )

    def visits(self, step: int) -> list[Visit]:
        """The visits of a step; items whose gold is no valid reply have none."""
        items = [item for item in self.items if not self.golds or item.id in self.golds]
        return visits_of_step(items, self.config.seed, step, self.config.items_per_step)

    def collect(self, model: BaseChatModel, visits: Sequence[Visit], concurrency: int) -> list[Group]:
        """Groups for the visits."""
        groups = run_sync(collect(self.system, model, visits, self.plan, concurrency=concurrency))
        runs = [run for group in groups for run in group.runs]
        if all(run.reward is None for run in runs):
            error = next((run.error for run in runs if run.error is not None), None)
            reason = f"{error.kind}: {error.message}" if error else "unknown"
            raise TrainingError(
                f"all {len(runs)} runs of a step failed (first: {reason}); mend that, then go on with --resume"
            )
        return groups


def _of(groups: Sequence[Group], visit: Visit) -> list[Group]:
    return [group for group in groups if (group.id.item, group.id.visit) == (visit.item.id, visit.number)]


def _varies(groups: Sequence[Group], loss: Loss) -> bool:
    return any(examples([group], loss)[1].informative for group in groups)
