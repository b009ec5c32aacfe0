"""Debate: seats answer, read each other's last answers, and revise for some rounds.

Round t reads round t-1 only, so the order of seats cannot matter. The end is a vote, or a judge that reads the last
answers; a single answer needs none. A seat whose peers gave no answer, or that is alone, keeps its own (or revises
itself: `self_refine`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from langgraph.graph import StateGraph
from pydantic import Field

from collabsim.context import RunContext
from collabsim.nodes.quoting import check_placeholder, fill, quote_all, with_answers
from collabsim.nodes.state import State, last_replies
from collabsim.playground import playground_graph
from collabsim.protocols import protocol
from collabsim.request import Message, Messages, with_text

from .endings import ReadAnswers, end_by_role, end_by_vote
from .rounds import add_round, new_graph

REVISE = "Others answered:\n\n{answers}\n\nCheck their reasoning and your own, then give your final answer."
REFINE = "Check your reasoning, then give your final answer."
JUDGE = "These answers were given:\n\n{answers}\n\nDecide which is right and give the final answer."


@dataclass(frozen=True, slots=True)
class Revise:
    """Prompt of one seat's revision: the question, its own last reply, the others' last answers."""

    seat: str
    text: str
    self_refine: bool
    quote_limit: int

    def __post_init__(self) -> None:
        check_placeholder(self.text, "answers")

    def __call__(self, state: State, run: RunContext) -> Messages | None:
        """None when there is nothing new to read."""
        replies = last_replies(state, run)
        own = replies.pop(self.seat, None)
        others = with_answers(replies, run)
        if others:
            text = fill(self.text, answers=quote_all(others.values(), limit=self.quote_limit))
        elif self.self_refine:
            text = REFINE
        else:
            return None
        own_turn = (Message("assistant", own.text),) if own is not None and own.text.strip() else ()
        return with_text((*run.item.messages, *own_turn), text)


def calls(present: int, *, rounds: int, final: str, self_refine: bool, **_: Any) -> int:
    """Upper bound of the calls of one run."""
    if present <= 1:
        return present * (rounds if self_refine else 1)
    return present * rounds + (final == "judge")


@protocol(
    family="text",
    roles=("judge",),
    absent="an absent seat neither answers nor is quoted",
    calls=calls,
)
def debate(
    seats: Sequence[str],
    *,
    rounds: Annotated[int, Field(ge=1)] = 2,
    final: Literal["vote", "judge"] = "vote",
    self_refine: bool = False,
    quote_limit: Annotated[int, Field(ge=20)] = 2000,
    revise: str = REVISE,
    verdict: str = JUDGE,
) -> StateGraph[Any, Any, Any, Any]:
    """Seats answer, read each other's last answers and revise; `rounds` counts the opening answers."""
    graph = new_graph()
    last = add_round(graph, seats)
    for draw in range(1, rounds):
        following = []
        for seat in seats:
            prompt = Revise(seat, revise, self_refine, quote_limit)
            following += add_round(graph, [seat], draw=draw, prompt=prompt, after=last)
        last = following
    if final == "vote":
        end_by_vote(graph, last)
    else:
        end_by_role(graph, last, role="judge", prompt=ReadAnswers(verdict, quote_limit), draw=rounds)
    return graph


graph = playground_graph(debate)
