"""Logit fusion: all seats write one text; each next token is drawn from their fused distributions.

The mean of the members' probabilities (a mixture) or their product, renormalised (a product of experts, Hinton 2002: the
mean of the logits). Weights are renormalised over the coalition. Alone, a seat decodes as always.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from langgraph.graph import StateGraph
from pydantic import Field

from collabsim.context import RunContext
from collabsim.errors import ConfigError, nearest
from collabsim.playground import playground_graph
from collabsim.protocols import protocol

from .joint import joint_graph

if TYPE_CHECKING:
    from collabsim.models.engines.logits import Logprobs

Rule = Literal["mean", "product"]


@dataclass(frozen=True, slots=True)
class FuseLogits:
    """The mean or the normalised product of next-token distributions."""

    how: Rule
    weights: tuple[float, ...]
    """One a member; they sum to 1."""

    @property
    def recipe(self) -> Any:
        """Rule and weights."""
        return ["fuse", self.how, list(self.weights)]

    def __call__(self, rows: Logprobs) -> Logprobs:
        """log sum_i w_i p_i, or sum_i w_i log p_i, of `rows` [members, vocabulary]."""
        import numpy as np

        weights = np.array(self.weights)[:, None]
        if self.how == "product":
            product: Logprobs = (weights * rows).sum(0)
            return product
        mean: Logprobs = np.logaddexp.reduce(rows + np.log(weights), axis=0)
        return mean


@dataclass(frozen=True, slots=True)
class FusePresent:
    """All present seats, in an order that no name or place decides: twins are one member in each other's stead."""

    how: Rule
    weights: Mapping[str, float]

    def __call__(self, run: RunContext) -> tuple[Sequence[str], FuseLogits]:
        """The present seats and the rule over them."""

        def place(seat: str) -> tuple[str, float, str]:
            return run.pool[seat].identity, self.weights.get(seat, 1.0), seat

        seats = sorted(run.order, key=place)
        weights = [self.weights.get(seat, 1.0) for seat in seats]
        return seats, FuseLogits(self.how, tuple(weight / sum(weights) for weight in weights))


@protocol(
    family="ensembling",
    needs=("logits", "same_tokenizer"),
    absent="an absent seat's distribution is left out, and the weights are those of the others",
    calls=lambda present, **_: present,
)
def logit_fusion(
    seats: Sequence[str],
    *,
    how: Rule = "mean",
    weights: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] | None = None,
) -> StateGraph[Any, Any, Any, Any]:
    """All seats write one text; each token comes from the mean or product of their next-token distributions."""
    for seat in weights or ():
        if seat not in seats:
            raise ConfigError(f"logit_fusion: weights name {seat!r}{nearest(seat, seats)}; the pool has {list(seats)}")
    return joint_graph("fuse", FusePresent(how, dict(weights or {})))


graph = playground_graph(logit_fusion)
