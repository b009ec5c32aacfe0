"""Mixture of agents: seats propose, an aggregator reads the proposals and writes the final output.

With more layers, seats propose again after reading all proposals of the layer before. The aggregator is a role: a fixed
helper, or the best present seat. A single present seat answers by itself, without an aggregator call. (Mixture-of-Agents,
arXiv 2406.04692; prompts and code are our own.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from langgraph.graph import END, StateGraph
from pydantic import Field

from collabsim.asking import AskRole
from collabsim.context import RunContext, context_of
from collabsim.episode import Reply
from collabsim.playground import playground_graph
from collabsim.protocols import protocol
from collabsim.quoting import quote_all, with_answers
from collabsim.request import Messages, with_text
from collabsim.state import State, last_replies, slot
from collabsim.voting import share

from .rounds import add_round, join, new_graph

AGGREGATE = "Several answers were proposed:\n\n{answers}\n\nSome may be wrong. Weigh them and give the best answer."


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The question with everybody's last proposal."""

    text: str
    quote_limit: int

    def __call__(self, state: State, run: RunContext) -> Messages | None:
        """None when a single seat is present or no proposal has an answer."""
        proposals = with_answers(last_replies(state, run), run)
        if run.alone or not proposals:
            return None
        quoted = quote_all(proposals.values(), limit=self.quote_limit)
        return with_text(run.item.messages, self.text.format(answers=quoted))


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

    async def finish(state: State, runtime: Any) -> dict[str, Any]:
        run = context_of(runtime)
        merged: Reply | None = state.get("replies", {}).get(slot("aggregator", layers))
        if merged is not None:
            return {"final": share([merged])}
        return {"final": share(list(last_replies(state, run).values()))} if run.alone else {"final": ()}

    graph = new_graph()
    last = add_round(graph, seats)
    for layer in range(1, layers):
        last = add_round(graph, seats, draw=layer, prompt=Aggregate(aggregate, quote_limit), after=last)
    merge = Aggregate(aggregate, quote_limit)
    graph.add_node("aggregate", AskRole("aggregate", "aggregator", merge, draw=layers))
    graph.add_node("finish", finish)
    join(graph, last, "aggregate")
    graph.add_edge("aggregate", "finish")
    graph.add_edge("finish", END)
    return graph


graph = playground_graph(mixture_of_agents)
