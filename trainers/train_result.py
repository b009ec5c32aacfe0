"""The result of a training, typed.

In: the content of `result.json`, which stays as it is in `TrainResult.values`. Out: the same numbers as attributes. What a
training did not measure (`eval.test: false`) is None. Left out on purpose: the learning curve; see `metrics.jsonl`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from collabsim.coalitions.intervals import Estimate
from collabsim.coalitions.result import as_estimate, estimates_in, known_fields


@dataclass(frozen=True, slots=True)
class Strengths:
    """Outcomes and values of the system and the learner on the task's items, before or after a training."""

    system: Estimate
    individual: Estimate | None
    """The learner's own answers; None for a helper, which has none."""
    compositional: Mapping[str, Estimate]
    """Seat to Shapley value (else leave-one-out); empty when values were not measured."""


@dataclass(frozen=True, slots=True)
class Gain:
    """After minus before, paired item by item."""

    system: Estimate
    individual: Estimate | None


@dataclass(frozen=True, slots=True)
class TrainCost:
    """Costs of a training. Tokens of the learner are in `learner_tokens`, those it was updated on in `trained_tokens`."""

    seconds: Mapping[str, float]
    """By phase: rollout, learn, push, evaluate, checkpoint."""
    runs: int = 0
    failed: int = 0
    without_learner: int = 0
    outvoted: int = 0
    truncated: int = 0
    learner_calls: int = 0
    learner_tokens: int = 0
    trained_tokens: int = 0
    partner_calls: int = 0
    partner_generations: int = 0
    partner_tokens: int = 0


@dataclass(frozen=True)
class TrainResult:
    """The result of a training."""

    values: dict[str, Any]
    """The content of `result.json`."""
    out: Path | None
    """The folder of the training; its `policy` is a pool member like any other."""

    @property
    def objective(self) -> str:
        """The objective, as tables name it."""
        return str(self.values["objective"])

    @property
    def seat(self) -> str:
        """The seat, or helper, that learned."""
        return str(self.values["seat"])

    @property
    def steps(self) -> int:
        """Steps that were made."""
        return int(self.values["steps"])

    @property
    def chosen_step(self) -> int:
        """The step whose weights were kept: the best on dev, or the last where dev was not looked at."""
        return int(self.values["chosen"]["step"])

    @cached_property
    def before(self) -> Strengths | None:
        """Measured with the weights of the start."""
        return self._strengths("before")

    @cached_property
    def after(self) -> Strengths | None:
        """Measured with the chosen weights."""
        return self._strengths("after")

    @cached_property
    def gain(self) -> Gain | None:
        """The gains of the training."""
        gains = self.values.get("gain")
        return None if gains is None else Gain(as_estimate(gains["system"]), _maybe(gains["individual"]))

    @cached_property
    def cost(self) -> TrainCost:
        """Costs of the training."""
        return TrainCost(**known_fields(TrainCost, self.values["cost"]))

    def _strengths(self, when: str) -> Strengths | None:
        section = cast("Mapping[str, Any] | None", self.values.get(when))
        if section is None:
            return None
        own = _maybe(section["individual"])
        return Strengths(as_estimate(section["system"]), own, estimates_in(section, "compositional"))


def _maybe(entry: Mapping[str, Any] | None) -> Estimate | None:
    return None if entry is None else as_estimate(entry)
