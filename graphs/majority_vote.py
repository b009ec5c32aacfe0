"""Majority vote: every seat answers once, the most frequent answer wins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langgraph.graph import StateGraph

from collabsim.playground import playground_graph
from collabsim.protocols import protocol

from .endings import end_by_vote
from .rounds import add_round, new_graph


@protocol(
    family="text",
    absent="an absent seat casts no ballot",
    calls=lambda present: present,
)
def majority_vote(seats: Sequence[str]) -> StateGraph[Any, Any, Any, Any]:
    """Every seat answers once and the most frequent answer wins; ties share the outcome."""
    graph = new_graph()
    end_by_vote(graph, add_round(graph, seats))
    return graph


graph = playground_graph(majority_vote)
