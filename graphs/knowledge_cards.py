"""Knowledge cards: seats write down what they know about the question, and one answers with these notes.

The answerer is a role: a fixed helper, or the best present seat, which then writes no card for itself unless `own_card`
says so. Cards that say nothing are not shown; a seat that gets no card answers as it would alone. A single present seat
answers by itself, without cards. (After Knowledge Card, arXiv 2305.09955, without retrieval and selection of cards.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from langgraph.graph import END, StateGraph
from pydantic import Field

from collabsim.context import RunContext
from collabsim.episode import Reply
from collabsim.nodes.asking import ask
from collabsim.nodes.current_run import context_of
from collabsim.nodes.quoting import check_placeholder, fill, quote_all, with_words
from collabsim.nodes.state import Replies, State, slot
from collabsim.nodes.voting import share
from collabsim.playground import playground_graph
from collabsim.protocols import protocol
from collabsim.request import Messages, with_text

from .rounds import add_round, join, new_graph

CARD = "Do not answer the question yet. Write a short note with the facts and methods that help to answer it."
ANSWER = "These notes may help; some may be wrong:\n\n{cards}\n\nNow answer the question."
CARD_DRAW = 1  # draw 0 is a seat's own answer
ANSWER_DRAW = 2


@dataclass(frozen=True, slots=True)
class WriteCard:
    """The question, with the request for a note instead of an answer."""

    seat: str
    text: str
    own_card: bool

    def __call__(self, state: State, run: RunContext) -> Messages | None:  # noqa: ARG002 (a Prompt)
        """None for a single present seat, and for the one that will answer unless it writes for itself too."""
        if run.alone or (run.roles.get("answerer") == self.seat and not self.own_card):
            return None
        return with_text(run.item.messages, self.text)


@dataclass(frozen=True, slots=True)
class AnswerWithCards:
    """The node of whoever answers: the answerer, or a single present seat."""

    node: str
    text: str
    quote_limit: int

    def __post_init__(self) -> None:
        check_placeholder(self.text, "cards")

    async def __call__(self, state: State, runtime: Any) -> dict[str, Any]:
        """Ask, and write the final output: nothing when no card was written and the answerer is a helper."""
        run = context_of(runtime)
        holder = run.order[0] if run.alone else run.roles.get("answerer")
        replies = state.get("replies", {})
        written = {seat: replies[place] for seat in run.order if (place := slot(seat, CARD_DRAW)) in replies}
        cards = with_words(written)
        if holder is None or (not cards and holder not in run.present):
            return {"final": ()}
        messages, draw = self.prompt(run, cards), ANSWER_DRAW if cards else 0
        reply = await ask(runtime, holder, messages, draw=draw, node=self.node)
        return {"final": share([reply])} if isinstance(reply, Reply) else {"final": ()}

    def prompt(self, run: RunContext, cards: Replies) -> Messages:
        """The question with the cards; the plain question without any."""
        if not cards:
            return run.item.messages
        quoted = quote_all(cards.values(), label="Note", limit=self.quote_limit)
        return with_text(run.item.messages, fill(self.text, cards=quoted))


@protocol(
    family="text",
    roles=("answerer",),
    absent="an absent seat writes no card; if it would answer, the next present seat does",
    calls=lambda present, **_: present if present <= 1 else present + 1,
)
def knowledge_cards(
    seats: Sequence[str],
    *,
    own_card: bool = False,
    quote_limit: Annotated[int, Field(ge=20)] = 2000,
    card: str = CARD,
    answer: str = ANSWER,
) -> StateGraph[Any, Any, Any, Any]:
    """Seats write notes, an answerer reads them: n + 1 calls with a helper as answerer, n with a seat."""
    graph = new_graph()
    writing = []
    for seat in seats:
        writing += add_round(graph, [seat], draw=CARD_DRAW, prompt=WriteCard(seat, card, own_card))
    graph.add_node("answer", AnswerWithCards("answer", answer, quote_limit))
    join(graph, writing, "answer")
    graph.add_edge("answer", END)
    return graph


graph = playground_graph(knowledge_cards)
