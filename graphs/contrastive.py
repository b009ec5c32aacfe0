"""Contrastive decoding: the best seats write, and tokens that the worst seats also find likely are scored lower.

The score of a token is log p_best + strength * (log p_best - log p_worst), over tokens that the best find plausible:
p_best >= plausible * max p_best (contrastive decoding, Li et al. 2022, arXiv 2210.15097). Best and worst are taken anew
among the present seats, by dev score; with `k` > 1, the geometric means of the k best and of the k worst.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Annotated, Any

from langgraph.graph import StateGraph
from pydantic import Field

from collabsim.context import RunContext
from collabsim.playground import playground_graph
from collabsim.protocols import protocol

from .joint import joint_graph

if TYPE_CHECKING:
    from collabsim.models.engines.logits import Logprobs

_LEAST = -100.0  # log-probability below which tokens are equally impossible: the gap stays a number


@dataclass(frozen=True, slots=True)
class Contrast:
    """The first half of the members against the second half."""

    strength: float
    plausible: float

    @property
    def recipe(self) -> Any:
        """Both settings."""
        return ["contrast", self.strength, self.plausible]

    def __call__(self, rows: Logprobs) -> Logprobs:
        """Scores of `rows` [2 k, vocabulary]; -inf for tokens that are not plausible."""
        import numpy as np

        half = len(rows) // 2
        best, worst = (np.maximum(part, _LEAST).mean(0) for part in (rows[:half], rows[half:]))
        allowed = best >= best.max() + log(self.plausible)
        scores: Logprobs = np.where(allowed, best + self.strength * (best - worst), -np.inf)
        return scores


@dataclass(frozen=True, slots=True)
class BestAgainstWorst:
    """The k best present seats, then the k worst; no seat is both."""

    k: int
    rule: Contrast

    def __call__(self, run: RunContext) -> tuple[Sequence[str], Contrast]:
        """The seats in this order, and the rule."""
        ranked = run.preference
        k = min(self.k, len(ranked) // 2)
        return (*ranked[:k], *ranked[-k:]), self.rule


def calls(present: int, *, k: int, **_: Any) -> int:
    """Calls of one run."""
    return present if present <= 1 else 2 * min(k, present // 2)


@protocol(
    family="ensembling",
    needs=("dev", "logits", "same_tokenizer"),
    absent="best and worst are taken among the present seats; alone a seat decodes as always",
    calls=calls,
)
def contrastive(
    seats: Sequence[str],  # noqa: ARG001 (present seats are ranked in the run)
    *,
    strength: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.2,
    plausible: Annotated[float, Field(gt=0, le=1)] = 0.1,
    k: Annotated[int, Field(ge=1)] = 1,
) -> StateGraph[Any, Any, Any, Any]:
    """The best seat by dev score writes, pushed away from what the worst would write."""
    return joint_graph("contrast", BestAgainstWorst(k, Contrast(strength, plausible)))


graph = playground_graph(contrastive)
