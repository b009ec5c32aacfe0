"""Routing by prediction: the seat that is predicted to do best answers, and no other seat is asked.

In: a function from a run to predicted scores by seat. Out: a graph of one choice, one call and the end. Predictions are
made for all seats and masked to the coalition; seats that are predicted alike come in the run's order of preference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.graph import START, StateGraph

from collabsim.context import RunContext
from collabsim.nodes.asking import computation
from collabsim.nodes.current_run import context_of
from collabsim.nodes.state import State
from collabsim.request import Messages

from .endings import end_by_reply
from .rounds import add_round, new_graph

Predict = Callable[[RunContext], Mapping[str, float]]
"""Predicted score of each seat on the run's item; empty where nothing was fitted (in the playground)."""


class RoutedState(State, total=False):
    """The shared state, and who was chosen."""

    chosen: str


@computation
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


def routed_graph(seats: Sequence[str], predict: Predict) -> StateGraph[Any, Any, Any, Any]:
    """Choose a seat, ask it, hand on its reply."""
    graph = new_graph(RoutedState)
    graph.add_node("route", Choose(predict))
    graph.add_edge(START, "route")
    nodes = [node for seat in seats for node in add_round(graph, [seat], prompt=IfChosen(seat), after=["route"])]
    end_by_reply(graph, nodes)
    return graph
