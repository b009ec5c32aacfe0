"""Objectives: the rewards of a group of runs.

In: an objective by name, or a weighted mixture. Out: terms, each of which makes its own groups of runs with its own rewards;
the weight of a term multiplies its advantages, so a mixture's gradient is the weighted sum of the terms' gradients.

`system` is C-RL: the outcome of the whole system with the learner in it. `individual` is the score of the learner's own
answer outside the system. `leave_one_out` subtracts from `system` the outcome without the learner: the same
gradient at a higher price, kept to show that. `coalition: shapley` draws the learner's predecessors once per group;
since the value without the learner cancels, that is the gradient of its Shapley value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from collabsim.errors import ConfigError, nearest
from collabsim.seeds import derive_seed

Term = Literal["system", "individual", "leave_one_out"]
CoalitionRule = Literal["full", "shapley"]
Noise = Literal["crossed", "shared", "independent"]
"""The way in which samples of the partners vary within a group; see `partner_noise`."""
TERMS: tuple[Term, ...] = ("system", "individual", "leave_one_out")


@dataclass(frozen=True, slots=True)
class Objective:
    """Terms with weights; most often a single term of weight 1."""

    terms: tuple[tuple[Term, float], ...]

    @property
    def name(self) -> str:
        """`system`, or `0.7*system+0.3*individual`."""
        if len(self.terms) == 1 and self.terms[0][1] == 1:
            return self.terms[0][0]
        return "+".join(f"{weight:g}*{term}" for term, weight in self.terms)

    def has(self, term: Term) -> bool:
        """Whether `term` is part of it."""
        return any(name == term for name, _ in self.terms)


def parse_objective(value: str | Mapping[str, float]) -> Objective:
    """An objective by name, or `{term: weight}`. Raises `ConfigError` for unknown terms and weights that are not positive."""
    weights = {value: 1.0} if isinstance(value, str) else dict(value)
    if not weights:
        raise ConfigError(f"train.objective: expected one of {', '.join(TERMS)} or weights of these, got nothing")
    for term, weight in weights.items():
        if term not in TERMS:
            raise ConfigError(
                f"train.objective: unknown objective {term!r}{nearest(term, TERMS)}; known are {', '.join(TERMS)}"
            )
        if not weight > 0:
            raise ConfigError(f"train.objective.{term}: expected a weight above 0, got {weight}; leave the term out")
    return Objective(tuple((term, float(weights[term])) for term in TERMS if term in weights))


def draw_coalition(
    rule: CoalitionRule, seats: Sequence[str], learner: str, seed: int, item_id: str, visit: int
) -> frozenset[str] | None:
    """The seats that are present in a group's runs; None means all.

    `shapley`: the players before the learner in a uniform order: their number is uniform in 0..n-1, then the set is uniform
    among those of that size (Castro et al. 2009). The learner is always present. One draw per (seed, item, visit).
    """
    if rule == "full":
        return None
    generator = Random(derive_seed("coalition", seed, item_id, visit))
    others = sorted(seat for seat in seats if seat != learner)
    size = generator.randrange(len(others) + 1)
    return frozenset((learner, *generator.sample(others, size)))
