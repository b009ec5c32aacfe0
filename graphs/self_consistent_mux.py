"""Self-consistent multiplexing: every seat samples several answers, the seat that agrees most with itself answers.

A seat's consistency is the share of its samples that give its most frequent answer; samples without an answer count
against it. The most consistent seat's most frequent answer is the final output, seats that tie share it, and so do
answers of one seat that tie. A single present seat answers once. A seat that decodes greedily agrees with itself by
construction: give seats a temperature. (After SLM-MUX, arXiv 2510.05077, without its choice among ties by dev accuracy.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from langgraph.graph import END, StateGraph
from pydantic import Field

from collabsim.context import RunContext
from collabsim.episode import Output, Reply
from collabsim.nodes.asking import computation
from collabsim.nodes.current_run import context_of
from collabsim.nodes.state import State, slot
from collabsim.nodes.voting import leading, share
from collabsim.playground import playground_graph
from collabsim.protocols import protocol
from collabsim.request import Messages

from .rounds import add_round, join, new_graph


def another_sample(state: State, run: RunContext) -> Messages | None:  # noqa: ARG001 (a Prompt)
    """The task's own messages once more; None for a single present seat, which answers once."""
    return None if run.alone else run.item.messages


def most_consistent(sampled: Sequence[Sequence[Reply]], run: RunContext) -> tuple[Output, ...]:
    """The most frequent answers of the seats whose most frequent answer is given most often; equal weights per seat.

    `sampled` holds the samples of each seat. Nothing when no sample has an answer.
    """
    leaders = [leading(replies, run.answers) for replies in sampled]
    most = max((count for _, count in leaders), default=0)
    winners = [first for first, count in leaders if count == most and count > 0]
    return tuple(output._replace(weight=output.weight / len(winners)) for first in winners for output in share(first))


@protocol(
    family="text",
    absent="an absent seat is not sampled",
    calls=lambda present, *, samples, **_: present if present <= 1 else present * samples,
)
def self_consistent_mux(
    seats: Sequence[str], *, samples: Annotated[int, Field(ge=2)] = 5
) -> StateGraph[Any, Any, Any, Any]:
    """Every seat samples `samples` answers; the most frequent answer of the most self-consistent seat is final."""
    graph = new_graph()
    nodes = add_round(graph, seats)
    for draw in range(1, samples):
        nodes += add_round(graph, seats, draw=draw, prompt=another_sample)

    @computation
    async def choose(state: State, runtime: Any) -> dict[str, Any]:
        run = context_of(runtime)
        replies = state.get("replies", {})
        sampled = [
            [replies[place] for draw in range(samples) if (place := slot(seat, draw)) in replies] for seat in run.order
        ]
        return {"final": share(sampled[0]) if run.alone else most_consistent(sampled, run)}

    graph.add_node("choose", choose)
    join(graph, nodes, "choose")
    graph.add_edge("choose", END)
    return graph


graph = playground_graph(self_consistent_mux)
