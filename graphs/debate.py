"""Debate: seats answer, read each other's last answers, and revise for some rounds.

Round t reads round t-1 only, so the order of seats cannot matter. The end is a vote, or a judge that reads the last
answers. A seat whose peers gave no answer keeps its own; alone it simply answers (or revises itself: `self_refine`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from langgraph.graph import END, StateGraph
from pydantic import Field

from collabsim.asking import AskRole
from collabsim.context import RunContext, context_of
from collabsim.playground import playground_graph
from collabsim.protocols import protocol
from collabsim.quoting import quote_all, with_answers
from collabsim.request import Message, Messages, with_text
from collabsim.state import State, last_replies, slot
from collabsim.voting import share

from .rounds import add_round, join, new_graph, vote

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

    def __call__(self, state: State, run: RunContext) -> Messages | None:
        """None when there is nothing to react to."""
        replies = last_replies(state, run)
        own = replies.pop(self.seat, None)
        others = with_answers(replies, run)
        if others:
            text = self.text.format(answers=quote_all(others.values(), limit=self.quote_limit))
        elif run.alone and self.self_refine:
            text = REFINE
        else:
            return None
        spoken = (Message("assistant", own.text),) if own is not None and own.text.strip() else ()
        return with_text((*run.item.messages, *spoken), text)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Prompt of the judge: the question and the last answers of all present seats."""

    text: str
    quote_limit: int

    def __call__(self, state: State, run: RunContext) -> Messages | None:
        """None when a single seat is present or nobody gave an answer."""
        answers = with_answers(last_replies(state, run), run)
        if run.alone or not answers:
            return None
        return with_text(
            run.item.messages, self.text.format(answers=quote_all(answers.values(), limit=self.quote_limit))
        )


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
        graph.add_node("vote", vote)
        join(graph, last, "vote")
        graph.add_edge("vote", END)
    else:
        _add_judge(graph, last, rounds, Verdict(verdict, quote_limit))
    return graph


def _add_judge(graph: StateGraph[Any, Any, Any, Any], last: list[str], draw: int, prompt: Verdict) -> None:
    async def announce(state: State, runtime: Any) -> dict[str, Any]:
        run = context_of(runtime)
        judged = state.get("replies", {}).get(slot("judge", draw))
        if judged is not None:
            return {"final": share([judged])}
        return {"final": share(list(last_replies(state, run).values()))} if run.alone else {"final": ()}

    graph.add_node("judge", AskRole("judge", "judge", prompt, draw=draw))
    graph.add_node("announce", announce)
    join(graph, last, "judge")
    graph.add_edge("judge", "announce")
    graph.add_edge("announce", END)


graph = playground_graph(debate)
