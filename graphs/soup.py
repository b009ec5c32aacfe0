"""Model soup: the mean of the present seats' weights answers.

Members are fine-tunes of one base: whole models or LoRA adapters (model soups, Wortsman et al. 2022, arXiv 2203.05482). A
single seat answers by itself, and without any seat the base does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langgraph.graph import StateGraph

from collabsim.models.merging import MergeRecipe
from collabsim.playground import playground_graph

from .merged import AnswerAsOne, merge_protocol, merged_graph


@merge_protocol
def soup(
    seats: Sequence[str],  # noqa: ARG001 (who is merged is settled in the run)
    *,
    base: str = "base",
) -> StateGraph[Any, Any, Any, Any]:
    """One model with the mean of the present seats' weights answers; `base` names the helper they were made from."""
    return merged_graph(AnswerAsOne("soup", MergeRecipe("mean"), base))


graph = playground_graph(soup)
