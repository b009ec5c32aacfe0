"""Routing by prediction: the seat that is predicted to do best answers, and nobody else is asked.

In: a function from a run to predicted scores by seat. Out: a graph of one choice, one call and the end. Predictions are
made for all seats and masked to the coalition; seats that are predicted alike come in the run's order of preference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.graph import END, START, StateGraph

from collabsim.context import RunContext, context_of
from collabsim.request import Messages
from collabsim.state import State, last_replies
from collabsim.voting import share

from .rounds import add_round, join, new_graph

Predict = Callable[[RunContext], Mapping[str, float]]
"""Predicted score of each seat on the run's item; empty where nothing was fitted (in the playground)."""


class RoutedState(State, total=False):
    """The shared state, and who was chosen."""

    chosen: str


@dataclass(frozen=True, slots=True)
class Choose:
    """The node that chooses among the present seats; makes no call."""

    predict: Predict

    async def __call__(self, state: RoutedState, runtime: Any) -> dict[str, str] | None:  # noqa: ARG002 (a node)
        """Write `chosen`; nothing when nobody is present."""
        run = context_of(runtime)
        if not run.present:
            return None
        predicted = {} if run.alone else self.predict(run)
        return {"chosen": max(run.preference, key=lambda seat: predicted.get(seat, 0.0))}


@dataclass(frozen=True, slots=True)
class IfChosen:
    """The task's own messages, for the seat that was chosen."""

    seat: str

    def __call__(self, state: RoutedState, run: RunContext) -> Messages | None:
        """None for every other seat."""
        return run.item.messages if state.get("chosen") == self.seat else None


async def finish(state: State, runtime: Any) -> dict[str, Any]:
    """The chosen seat's reply is the final output."""
    return {"final": share(list(last_replies(state, context_of(runtime)).values()))}


def routed_graph(seats: Sequence[str], predict: Predict) -> StateGraph[Any, Any, Any, Any]:
    """Choose a seat, ask it, hand on its reply."""
    graph = new_graph(RoutedState)
    graph.add_node("route", Choose(predict))
    graph.add_edge(START, "route")
    nodes = [node for seat in seats for node in add_round(graph, [seat], prompt=IfChosen(seat), after=["route"])]
    graph.add_node("finish", finish)
    join(graph, nodes, "finish")
    graph.add_edge("finish", END)
    return graph
