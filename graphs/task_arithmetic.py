"""Task arithmetic: the base plus what the present seats have learnt, added up, answers.

A seat's delta is its weights minus the base's; the merge is base + scale * sum of deltas (task arithmetic, Ilharco et
al. 2023, arXiv 2212.04089, where 0.3-0.4 serves most sums). A single seat answers by itself (not base plus its
delta), and without any seat the base does.
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
def task_arithmetic(
    seats: Sequence[str],  # noqa: ARG001 (who is merged is settled in the run)
    *,
    base: str = "base",
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.4,
) -> StateGraph[Any, Any, Any, Any]:
    """One model with the base's weights plus the sum of the seats' deltas answers."""
    return merged_graph(AnswerAsOne("merge", MergeRecipe("task_arithmetic", scale=scale), base))


graph = playground_graph(task_arithmetic)
