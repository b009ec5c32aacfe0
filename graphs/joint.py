"""The one node of protocols whose members write a text together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langgraph.graph import END, START, StateGraph

from collabsim.context import RunContext
from collabsim.episode import Reply
from collabsim.nodes.asking import ask
from collabsim.nodes.asking_jointly import ask_joint
from collabsim.nodes.current_run import context_of
from collabsim.nodes.state import slot
from collabsim.nodes.voting import share

from .rounds import new_graph

if TYPE_CHECKING:
    from collabsim.models.local.joint_model import Combine

Choose = Callable[[RunContext], "tuple[Sequence[str], Combine]"]
"""(run) -> the seats that write when two or more are present, in the order in which the rule reads them, and the rule."""


@dataclass(frozen=True, slots=True)
class WriteTogether:
    """A node in which the chosen members write the final output; a single present seat answers by itself."""

    node: str
    choose: Choose

    async def __call__(self, state: Any, runtime: Any) -> dict[str, Any]:  # noqa: ARG002 (a node)
        """Write the final output; an empty one when nobody is present."""
        run = context_of(runtime)
        if not run.present:
            return {"final": ()}
        if run.alone:
            reply = await ask(runtime, run.order[0], run.item.messages, node=self.node)
        else:
            seats, combine = self.choose(run)
            reply = await ask_joint(runtime, seats, run.item.messages, combine, node=self.node)
        if not isinstance(reply, Reply):
            return {"final": ()}
        return {"replies": {slot(self.node, 0): reply}, "final": share([reply])}


def joint_graph(node: str, choose: Choose) -> StateGraph[Any, Any, Any, Any]:
    """A graph of this one node."""
    graph = new_graph()
    graph.add_node(node, WriteTogether(node, choose))
    graph.add_edge(START, node)
    graph.add_edge(node, END)
    return graph
