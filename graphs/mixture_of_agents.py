"""Mixture of agents: seats propose, an aggregator reads the proposals and writes the final output.

With more layers, seats propose again after reading all proposals of the layer before. The aggregator is a role: a fixed
helper, or the best present seat. A single answer is final as it stands, without an aggregator call: there is nothing to
merge, so that a member without an answer changes nothing. (Mixture-of-Agents, arXiv 2406.04692; prompts and code are our
own.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from langgraph.graph import StateGraph
from pydantic import Field

from collabsim.playground import playground_graph
from collabsim.protocols import protocol

from .endings import ReadAnswers, end_by_role
from .rounds import add_round, new_graph

AGGREGATE = "Several answers were proposed:\n\n{answers}\n\nSome may be wrong. Weigh them and give the best answer."


def calls(present: int, *, layers: int, **_: Any) -> int:
    """Upper bound of the calls of one run."""
    return present if present <= 1 else present * layers + 1


@protocol(
    family="text",
    roles=("aggregator",),
    absent="an absent seat proposes nothing; if it would aggregate, the next present seat does",
    calls=calls,
)
def mixture_of_agents(
    seats: Sequence[str],
    *,
    layers: Annotated[int, Field(ge=1)] = 1,
    quote_limit: Annotated[int, Field(ge=20)] = 2000,
    aggregate: str = AGGREGATE,
) -> StateGraph[Any, Any, Any, Any]:
    """Seats propose in `layers` layers; an aggregator merges the last proposals into the final output."""

    graph = new_graph()
    prompt = ReadAnswers(aggregate, quote_limit)
    last = add_round(graph, seats)
    for layer in range(1, layers):
        last = add_round(graph, seats, draw=layer, prompt=prompt, after=last)
    end_by_role(graph, last, role="aggregator", prompt=prompt, draw=layers)
    return graph


graph = playground_graph(mixture_of_agents)
