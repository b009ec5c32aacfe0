"""Shared parts of the protocols in which a coalition is a merge of weights: their node and their declaration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.graph import END, START, StateGraph

from collabsim.context import RunContext
from collabsim.episode import Reply
from collabsim.models.merging import MergeRecipe
from collabsim.nodes.asking_merged import ask_merged
from collabsim.nodes.current_run import context_of
from collabsim.nodes.state import slot
from collabsim.nodes.voting import share
from collabsim.protocols import protocol

from .rounds import new_graph

ABSENT = "an absent seat's weights are left out of the merge; without any seat the base answers"

merge_protocol = protocol(
    family="weights",
    needs=("weights", "same_architecture", "same_tokenizer"),
    absent=ABSENT,
    calls=lambda present, **_: 1,  # noqa: ARG005 (a merge answers in one call, and so does the base)
    empty="base",
    per_coalition=True,
)
"""Registers a protocol that answers by one merge of all present seats."""


def everybody(run: RunContext) -> Sequence[str]:
    """All present seats."""
    return run.order


@dataclass(frozen=True, slots=True)
class AnswerAsOne:
    """A node in which the merge of the chosen present seats writes the final output."""

    node: str
    recipe: MergeRecipe
    base: str
    choose: Callable[[RunContext], Sequence[str]] = everybody

    async def __call__(self, state: Any, runtime: Any) -> dict[str, Any]:  # noqa: ARG002 (a node)
        """Ask the merge (a single seat, or the base) for the item's answer."""
        run = context_of(runtime)
        seats = self.choose(run)
        reply = await ask_merged(runtime, seats, run.item.messages, self.recipe, base=self.base, node=self.node)
        if not isinstance(reply, Reply):
            return {"final": ()}
        return {"replies": {slot(self.node, 0): reply}, "final": share([reply])}


def merged_graph(node: AnswerAsOne) -> StateGraph[Any, Any, Any, Any]:
    """A graph of this one node."""
    graph = new_graph()
    graph.add_node(node.node, node)
    graph.add_edge(START, node.node)
    graph.add_edge(node.node, END)
    return graph
