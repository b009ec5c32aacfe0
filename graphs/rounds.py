"""Rounds of asking: the fan-out and the join that several protocols are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langgraph.graph import START, StateGraph

from collabsim.nodes.asking import Ask, Prompt, opening
from collabsim.nodes.state import State, slot


def new_graph(schema: type = State) -> StateGraph[Any, Any, Any, Any]:
    """An empty graph over the shared state, or over a protocol's own extension of it.

    It names no context schema: LangGraph's server would try to make a run context of an empty dictionary.
    """
    return StateGraph(schema)


def add_round(
    graph: StateGraph[Any, Any, Any, Any],
    seats: Sequence[str],
    *,
    draw: int = 0,
    prompt: Prompt = opening,
    after: Sequence[str] = (START,),
) -> list[str]:
    """Ask every seat once, in parallel, when all nodes of `after` are done. Returns the names of the new nodes.

    A node is called `seat-draw`; the barrier on `after` is safe because absent seats' nodes run and stay silent.
    """
    nodes = [slot(seat, draw) for seat in seats]
    for node, seat in zip(nodes, seats, strict=True):
        graph.add_node(node, Ask(node, seat, prompt, draw=draw))
        join(graph, after, node)
    return nodes


def join(graph: StateGraph[Any, Any, Any, Any], sources: Sequence[str], target: str) -> None:
    """Run `target` once, when all of `sources` are done."""
    if len(sources) == 1:
        graph.add_edge(sources[0], target)
    else:
        graph.add_edge(list(sources), target)
