"""TIES: the base plus the seats' trimmed deltas, where their signs agree, answers.

Of each delta the `density` largest entries stay; each weight takes the sign with the larger total; the deltas of this sign
are averaged and added, times `scale` (TIES-merging, Yadav et al. 2023, arXiv 2306.01708).
A single seat answers by itself (not base plus its delta), and without any seat the base does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from langgraph.graph import StateGraph
from pydantic import Field

from collabsim.models.merging import MergeRecipe
from collabsim.playground import playground_graph

from .merged import AnswerAsOne, merge_protocol, merged_graph


@merge_protocol
def ties(
    seats: Sequence[str],  # noqa: ARG001 (who is merged is settled in the run)
    *,
    base: str = "base",
    density: Annotated[float, Field(gt=0, le=1)] = 0.2,
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0,
) -> StateGraph[Any, Any, Any, Any]:
    """One model with the base's weights plus the mean of the seats' largest deltas under an elected sign answers."""
    return merged_graph(AnswerAsOne("merge", MergeRecipe("ties", scale=scale, density=density), base))


graph = playground_graph(ties)
