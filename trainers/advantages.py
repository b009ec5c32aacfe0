"""Group-relative advantages.

In: one reward per run (None where it has no outcome), the id of its group, and whether it called the learner. Out: one
advantage per run, or None for a run that gives no gradient, and counts of why. Groups are found by id, never by
position: a lost run cannot shift the others. A missing reward is no reward: it is left out before the baseline.

Shapes are written behind names: R runs of a batch, in their order; G runs of one group.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

from collabsim.errors import ConfigError

Baseline = Literal["mean", "others", "none"]
Scale = Literal["none", "group_std", "batch_std", "batch_centred_std"]
TOLERANCE = 1e-9
"""Rewards closer than this are equal: they are means of scores in [0, 1]."""


@dataclass(frozen=True, slots=True)
class Estimator:
    """How rewards become advantages.

    The value of the system without the learner, which leave-one-out subtracts from every reward of a group, cancels in all
    combinations except baseline `none`, scale `batch_std` and `keep_means`, where the level of the rewards matters.
    """

    baseline: Baseline = "mean"
    """`mean` of the group (GRPO, Dr. GRPO), mean of the `others` (RLOO), or `none` (plain REINFORCE)."""
    scale: Scale = "none"
    """Divide by the std of the group (GRPO), of all rewards of the batch, or of all centred rewards of the batch."""
    keep_means: tuple[float, float] | None = None
    """Only groups whose mean reward lies between these: a filter by difficulty. Its gradient is that of the groups kept."""

    @property
    def ignores_level(self) -> bool:
        """Whether a constant added to all rewards of a group changes nothing."""
        return self.baseline != "none" and self.scale != "batch_std" and self.keep_means is None


@dataclass(frozen=True, slots=True)
class Advantages:
    """One entry per run, in the order of the rewards."""

    values: tuple[float | None, ...]
    """None: no gradient from this run."""
    groups: int = 0
    missing: int = 0
    """Runs without an outcome, left out before the baseline."""
    uncalled: int = 0
    """Runs that never called the learner: they count in the baseline and in the divisor, and have no row."""
    small: int = 0
    """Groups skipped because fewer than two of their runs have an outcome and called the learner."""
    flat: int = 0
    """Groups skipped because their rewards are all equal."""
    filtered: int = 0
    """Groups skipped by `keep_means`."""

    @property
    def informative(self) -> int:
        """Groups that give a gradient."""
        return self.groups - self.small - self.flat - self.filtered


def advantages(
    rewards_R: Sequence[float | None],
    groups_R: Sequence[Hashable],
    estimator: Estimator,
    called_R: Sequence[bool] | None = None,
) -> Advantages:
    """The advantage of every run, [R].

    `rewards_R`: None or NaN where there is no outcome. `groups_R`: the id of each run's group. `called_R`: whether the run
    called the learner; None means all did. With baseline `none` an equal group is not flat: its rewards still push.

    GRPO: Shao et al. 2024 (group mean, group std). Dr. GRPO: Liu et al. 2025 (group mean, no std). RLOO: Ahmadian et al.
    2024 (mean of the others). Raises `ConfigError` when the lengths differ.
    """
    asked_R = [True] * len(rewards_R) if called_R is None else list(called_R)
    if not len(rewards_R) == len(groups_R) == len(asked_R):
        raise ConfigError(
            f"expected one group id and one call flag per reward, got {len(rewards_R)}, {len(groups_R)}, {len(asked_R)}"
        )
    members: dict[Hashable, list[int]] = defaultdict(list)
    for index, group in enumerate(groups_R):
        members[group].append(index)
    known = {index: value for index, value in enumerate(rewards_R) if value is not None and not math.isnan(value)}
    centred: dict[int, float] = {}
    counts = {"small": 0, "flat": 0, "filtered": 0}
    for indices in members.values():
        reason = _reason_to_skip([index for index in indices if index in known], known, asked_R, estimator)
        if reason:
            counts[reason] += 1
        else:
            centred.update(_centred({index: known[index] for index in indices if index in known}, estimator))
    # Over the whole batch, skipped groups included: what is skipped must not change the scale of the rest.
    scale = _batch_scale(list(known.values()), [_members_of(known, rows) for rows in members.values()], estimator)
    values_R = [centred[run] / scale if run in centred and asked_R[run] else None for run in range(len(rewards_R))]
    return Advantages(
        values=tuple(values_R),
        groups=len(members),
        missing=len(rewards_R) - len(known),
        uncalled=sum(not asked_R[index] for index in known),
        **counts,
    )


def _members_of(known: dict[int, float], indices: Sequence[int]) -> list[float]:
    return [known[index] for index in indices if index in known]


def _reason_to_skip(
    indices: Sequence[int], known: dict[int, float], called_R: Sequence[bool], estimator: Estimator
) -> str | None:
    if sum(called_R[index] for index in indices) < 2:
        return "small"
    values_G = [known[index] for index in indices]
    if estimator.baseline != "none" and max(values_G) - min(values_G) < TOLERANCE:
        return "flat"
    if estimator.keep_means is not None:
        low, high = estimator.keep_means
        if not low <= _mean(values_G) <= high:
            return "filtered"
    return None


def _centred(rewards: dict[int, float], estimator: Estimator) -> dict[int, float]:
    """Rewards of one group minus their baseline, over the group's own scale."""
    values_G = list(rewards.values())
    total, count = math.fsum(values_G), len(values_G)
    std = _std(values_G) if estimator.scale == "group_std" else 1.0
    if std < TOLERANCE:  # an equal group, which only gets here without a baseline
        std = 1.0
    if estimator.baseline == "none":
        return {index: value / std for index, value in rewards.items()}
    # Leaving one's own reward out of the mean is the mean-centred reward times n / (n - 1).
    factor = count / (count - 1) if estimator.baseline == "others" else 1.0
    return {index: (value - total / count) * factor / std for index, value in rewards.items()}


def _batch_scale(values: Sequence[float], groups: Sequence[Sequence[float]], estimator: Estimator) -> float:
    if estimator.scale == "batch_std":
        spread = _std(values)
    elif estimator.scale == "batch_centred_std":
        spread = _std([value - _mean(group) for group in groups for value in group])  # their mean is zero
    else:
        return 1.0
    return spread if spread > TOLERANCE else 1.0


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _std(values: Sequence[float]) -> float:
    """Population standard deviation."""
    if not values:
        return 0.0
    mean = _mean(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
