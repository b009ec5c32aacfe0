"""DARE-TIES: the base plus the seats' randomly thinned deltas, where their signs agree, answers.

Of each delta a random share `density` stays, rescaled to its expectation (DARE, Yu et al. 2024, arXiv 2311.03099); signs
are elected and averaged as in TIES. One mask for each seat's tensor, from `seed` and content: the same in every coalition.
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
def dare_ties(
    seats: Sequence[str],  # noqa: ARG001 (who is merged is settled in the run)
    *,
    base: str = "base",
    density: Annotated[float, Field(gt=0, le=1)] = 0.5,
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0,
    seed: int = 0,
) -> StateGraph[Any, Any, Any, Any]:
    """One model with the base's weights plus the mean of the seats' thinned deltas under an elected sign answers."""
    return merged_graph(AnswerAsOne("merge", MergeRecipe("dare_ties", scale=scale, density=density, seed=seed), base))


graph = playground_graph(dare_ties)
