"""Trained aggregator: seats answer, and an aggregator seat, made to be trained, writes the final answer from theirs.

Named by the option `aggregator`, it only aggregates; when it is off, the others vote, so that its leave-one-out worth is
what it adds to a vote. Unnamed, it is a role: the best present seat by dev score (or a helper) aggregates too. Proposals
are shown in an order that is drawn afresh for every item, so that training cannot learn places (aggregation as
reasoning, AggLM, arXiv 2509.06870; prompts and code are our own). With no proposal to read, a named aggregator gives its
own answer to the question; an unnamed one, which has proposed already, is asked only where there are two to choose from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from langgraph.graph import END, StateGraph
from pydantic import Field

from collabsim.context import RunContext
from collabsim.episode import Reply
from collabsim.errors import ConfigError, nearest
from collabsim.nodes.asking import Ask, AskRole, computation
from collabsim.nodes.current_run import context_of
from collabsim.nodes.quoting import check_placeholder, fill, quote_all, with_answers
from collabsim.nodes.state import State, slot
from collabsim.nodes.voting import plurality, share
from collabsim.playground import playground_graph
from collabsim.protocols import protocol
from collabsim.request import Messages, with_text

from .rounds import add_round, join, new_graph

ROLE = "aggregator"
AGGREGATE = (
    "Here are candidate answers:\n\n{answers}\n\nThey may all be wrong. Check them, correct or combine them, and give the "
    "final answer."
)


def proposals(state: State, run: RunContext, samples: int, aggregator: str | None) -> dict[str, Reply]:
    """The proposals, in the run's order of seats and by draw."""
    replies = state.get("replies", {})
    slots = [slot(seat, draw) for seat in run.order if seat != aggregator for draw in range(samples)]
    return {name: replies[name] for name in slots if name in replies}


@dataclass(frozen=True, slots=True)
class Propose:
    """The task's own messages; a seat that is alone answers once."""

    draw: int

    def __call__(self, state: State, run: RunContext) -> Messages | None:  # noqa: ARG002 (a Prompt)
        """None for further samples of a seat that is alone."""
        return None if run.alone and self.draw else run.item.messages


@dataclass(frozen=True, slots=True)
class OwnAnswer:
    """The task's own messages, for a named aggregator that nobody proposes an answer to."""

    aggregator: str
    samples: int

    def __call__(self, state: State, run: RunContext) -> Messages | None:
        """None when there is a proposal with an answer."""
        proposed = with_answers(proposals(state, run, self.samples, self.aggregator), run)
        return None if proposed else run.item.messages


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The question with the proposals."""

    aggregator: str | None
    samples: int
    text: str
    quote_limit: int

    def __post_init__(self) -> None:
        check_placeholder(self.text, "answers")

    def __call__(self, state: State, run: RunContext) -> Messages | None:
        """None when there is nothing to read; an aggregator that proposes needs two answers."""
        answers = with_answers(proposals(state, run, self.samples, self.aggregator), run)
        if len(answers) < (1 if self.aggregator else 2):
            return None
        return with_text(
            run.item.messages, fill(self.text, answers=quote_all(answers.values(), limit=self.quote_limit))
        )


@computation
@dataclass(frozen=True, slots=True)
class Finish:
    """The aggregator's reply is the final output; without it a single seat's own answer, or a vote."""

    aggregator: str | None
    samples: int

    async def __call__(self, state: State, runtime: Any) -> dict[str, Any]:
        """Write the final output."""
        run = context_of(runtime)
        replies = state.get("replies", {})
        written = replies.get(slot(self.aggregator or ROLE, self.samples))
        if written is None and self.aggregator:
            written = replies.get(slot(self.aggregator, 0))
        if written is not None or run.alone:
            return {"final": share([written] if written is not None else list(replies.values()))}
        return {"final": plurality(list(proposals(state, run, self.samples, self.aggregator).values()), run.answers)}


def calls(present: int, *, samples: int, **_: Any) -> int:
    """Upper bound of the calls of one run."""
    return present if present <= 1 else present * samples + 1


@protocol(
    family="training",
    roles=(ROLE,),
    absent="an absent seat proposes nothing; without the named aggregator the others vote",
    calls=calls,
)
def trained_aggregator(
    seats: Sequence[str],
    *,
    aggregator: str | None = None,
    samples: Annotated[int, Field(ge=1)] = 1,
    quote_limit: Annotated[int, Field(ge=20)] = 2000,
    aggregate: str = AGGREGATE,
) -> StateGraph[Any, Any, Any, Any]:
    """Seats answer, and an aggregator seat, made to be trained in place, writes the final answer from theirs."""
    if aggregator is not None and aggregator not in seats:
        raise ConfigError(
            f"trained_aggregator: no seat {aggregator!r}{nearest(aggregator, seats)}; the pool has {list(seats)}"
        )
    graph = new_graph()
    last = [
        node
        for draw in range(samples)
        for node in add_round(graph, [seat for seat in seats if seat != aggregator], draw=draw, prompt=Propose(draw))
    ]
    prompt = Aggregate(aggregator, samples, aggregate, quote_limit)
    if aggregator is None:
        graph.add_node("aggregate", AskRole("aggregate", ROLE, prompt, draw=samples))
    else:
        last = add_round(graph, [aggregator], prompt=OwnAnswer(aggregator, samples), after=last)
        graph.add_node("aggregate", Ask("aggregate", aggregator, prompt, draw=samples))
    graph.add_node("finish", Finish(aggregator, samples))
    join(graph, last, "aggregate")
    graph.add_edge("aggregate", "finish")
    graph.add_edge("finish", END)
    return graph


graph = playground_graph(trained_aggregator)
