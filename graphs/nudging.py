"""Nudging: a base seat writes; where it is unsure of the next token, a second seat supplies it.

Unsure means that the base's likeliest token has less probability than `threshold` (Fei et al. 2024, arXiv 2410.09300;
there the second model supplies a word, here a token, since the members share one vocabulary). The second seat holds
the role `nudger`: the better of the two by dev score unless the config names one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from langgraph.graph import StateGraph
from pydantic import Field

from collabsim.context import RunContext
from collabsim.errors import ProtocolError
from collabsim.playground import PLAYGROUND_SEATS, playground_graph
from collabsim.protocols import protocol

from .joint import joint_graph

if TYPE_CHECKING:
    from collabsim.models.engines.logits import Logprobs


@dataclass(frozen=True, slots=True)
class Nudge:
    """The base's distribution, or the nudger's where the base is unsure."""

    threshold: float

    @property
    def recipe(self) -> Any:
        """The threshold."""
        return ["nudge", self.threshold]

    def __call__(self, rows: Logprobs) -> Logprobs:
        """One of the two `rows`: [base, nudger]."""
        import math

        unsure = math.exp(rows[0].max()) < self.threshold
        chosen: Logprobs = rows[int(unsure)]
        return chosen


@dataclass(frozen=True, slots=True)
class BaseAndNudger:
    """The base, then the nudger."""

    rule: Nudge

    def __call__(self, run: RunContext) -> tuple[Sequence[str], Nudge]:
        """Both seats in this order. Raises `ProtocolError` when a helper was made the nudger."""
        nudger = run.roles.get("nudger", "")
        if nudger not in run.present:
            raise ProtocolError(
                f"nudging: expected one of the two seats {list(run.pool)} in the role 'nudger', got {nudger!r}; name a seat"
            )
        bases = [seat for seat in run.order if seat != nudger]
        return (bases[0], nudger), self.rule


@protocol(
    family="ensembling",
    players=(2, 2),
    roles=("nudger",),
    needs=("logits", "same_tokenizer"),
    absent="the seat that is left decodes alone",
    calls=lambda present, **_: present,
)
def nudging(
    seats: Sequence[str],  # noqa: ARG001 (who is base and who nudger is settled in the run)
    *,
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.4,
) -> StateGraph[Any, Any, Any, Any]:
    """A base seat writes; where it is unsure of the next token, the other seat supplies it."""
    return joint_graph("nudge", BaseAndNudger(Nudge(threshold)))


graph = playground_graph(nudging, PLAYGROUND_SEATS[:2])
