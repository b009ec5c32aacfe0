"""Majority vote: every seat answers once, the most frequent answer wins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langgraph.graph import END, StateGraph

from collabsim.playground import playground_graph
from collabsim.protocols import protocol

from .rounds import add_round, join, new_graph, vote


@protocol(
    family="text",
    absent="an absent seat casts no ballot",
    calls=lambda present: present,
)
def majority_vote(seats: Sequence[str]) -> StateGraph[Any, Any, Any, Any]:
    """Every seat answers once and the most frequent answer wins; ties share the outcome."""
    graph = new_graph()
    ballots = add_round(graph, seats)
    graph.add_node("vote", vote)
    join(graph, ballots, "vote")
    graph.add_edge("vote", END)
    return graph


graph = playground_graph(majority_vote)
