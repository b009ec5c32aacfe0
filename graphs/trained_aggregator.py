"""Trained aggregator: seats answer, and an aggregator seat, made to be trained, writes the final answer from theirs.

Named by the option `aggregator`, it only aggregates; when it is off, the others vote, so that its leave-one-out worth is
what it adds to a vote. Unnamed, the best present seat by dev score aggregates beside answering. Proposals are shown in an
order that is drawn afresh for every item, so that training cannot learn places (aggregation as reasoning, AggLM,
arXiv 2509.06870; prompts and code are our own). With no proposal to read, the aggregator answers the question itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from langgraph.graph import END, START, StateGraph
from pydantic import Field

from collabsim.asking import ask
from collabsim.context import RunContext, context_of
from collabsim.episode import Reply
from collabsim.errors import ConfigError
from collabsim.playground import playground_graph
from collabsim.pool import nearest
from collabsim.protocols import protocol
from collabsim.quoting import check_placeholder, fill, quote_all, with_answers
from collabsim.request import Messages, with_text
from collabsim.state import State, slot
from collabsim.voting import plurality, share

from .rounds import add_round, join, new_graph

AGGREGATE = (
    "Here are candidate answers:\n\n{answers}\n\nThey may all be wrong. Check them, correct or combine them, and give the "
    "final answer."
)


def proposals(state: State, run: RunContext, samples: int, aggregator: str | None) -> dict[str, Reply]:
    """What was proposed, in the run's order of seats and by draw."""
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
class Aggregate:
    """The node of the aggregator, and of the final output."""

    aggregator: str | None
    samples: int
    text: str
    quote_limit: int

    def __post_init__(self) -> None:
        check_placeholder(self.text, "answers")

    async def __call__(self, state: State, runtime: Any) -> dict[str, Any]:
        """The aggregator's reply; the vote of the proposals when it is off; a single seat's own answer."""
        run = context_of(runtime)
        if not run.present:
            return {"final": ()}
        given = proposals(state, run, self.samples, self.aggregator)
        holder = self.aggregator or run.preference[0]
        if run.alone and given:
            return {"final": share(list(given.values()))}
        if holder not in run.present:
            return {"final": plurality(list(given.values()), run.answers)}
        # Alone it gives its own first answer; otherwise its draws come after those of its proposals.
        draw = 0 if run.alone else self.samples
        reply = await ask(runtime, holder, self._prompt(given, run), draw=draw, node="aggregate")
        return {"final": share([reply]) if isinstance(reply, Reply) else ()}

    def _prompt(self, given: dict[str, Reply], run: RunContext) -> Messages:
        answers = with_answers(given, run)
        if not answers:
            return run.item.messages
        return with_text(
            run.item.messages, fill(self.text, answers=quote_all(answers.values(), limit=self.quote_limit))
        )


def calls(present: int, *, samples: int, **_: Any) -> int:
    """Upper bound of the calls of one run."""
    return present if present <= 1 else present * samples + 1


@protocol(
    family="training",
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
    proposers = [seat for seat in seats if seat != aggregator]
    nodes = [
        node for draw in range(samples) for node in add_round(graph, proposers, draw=draw, prompt=Propose(draw))
    ] or [START]
    graph.add_node("aggregate", Aggregate(aggregator, samples, aggregate, quote_limit))
    join(graph, nodes, "aggregate")
    graph.add_edge("aggregate", END)
    return graph


graph = playground_graph(trained_aggregator)
