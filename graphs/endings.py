"""Endings of protocols: a vote, the reply of the one seat that was asked, or a role that reads the last answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.graph import END, StateGraph

from collabsim.context import RunContext
from collabsim.nodes.asking import AskRole, computation
from collabsim.nodes.current_run import context_of
from collabsim.nodes.quoting import check_placeholder, fill, quote_all, with_answers
from collabsim.nodes.state import State, last_replies, slot
from collabsim.nodes.voting import plurality, share
from collabsim.request import Messages, with_text

from .rounds import join


@dataclass(frozen=True, slots=True)
class ReadAnswers:
    """The question with the last answers of all present seats: the prompt of whoever judges or merges them."""

    text: str
    """Words around `{answers}`."""
    quote_limit: int
    """Longest quotation of one answer, in characters."""

    def __post_init__(self) -> None:
        check_placeholder(self.text, "answers")

    def __call__(self, state: State, run: RunContext) -> Messages | None:
        """None when there are not two answers to read: a single one stands as it is, whoever else is present."""
        answers = with_answers(last_replies(state, run), run)
        if len(answers) < 2:
            return None
        quoted = quote_all(answers.values(), limit=self.quote_limit)
        return with_text(run.item.messages, fill(self.text, answers=quoted))


def end_by_vote(graph: StateGraph[Any, Any, Any, Any], after: Sequence[str]) -> None:
    """The most frequent of the last answers is the final output; ties share it."""

    @computation
    async def vote(state: State, runtime: Any) -> dict[str, Any]:
        run = context_of(runtime)
        replies = list(last_replies(state, run).values())
        return {"final": share(replies) if run.alone else plurality(replies, run.answers)}

    graph.add_node("vote", vote)
    join(graph, after, "vote")
    graph.add_edge("vote", END)


def end_by_reply(graph: StateGraph[Any, Any, Any, Any], after: Sequence[str]) -> None:
    """The last reply of the one seat that was asked is the final output."""

    @computation
    async def finish(state: State, runtime: Any) -> dict[str, Any]:
        return {"final": share(list(last_replies(state, context_of(runtime)).values()))}

    graph.add_node("finish", finish)
    join(graph, after, "finish")
    graph.add_edge("finish", END)


def end_by_role(
    graph: StateGraph[Any, Any, Any, Any], after: Sequence[str], *, role: str, prompt: ReadAnswers, draw: int
) -> None:
    """The reply of the role's holder is the final output; without one, the only answer, or a single seat's own reply."""

    @computation
    async def finish(state: State, runtime: Any) -> dict[str, Any]:
        run = context_of(runtime)
        written = state.get("replies", {}).get(slot(role, draw))
        if written is not None:
            return {"final": share([written])}
        last = last_replies(state, run)
        return {"final": share(list((last if run.alone else with_answers(last, run)).values()))}

    graph.add_node(role, AskRole(role, role, prompt, draw=draw))
    graph.add_node("finish", finish)
    join(graph, after, role)
    graph.add_edge(role, "finish")
    graph.add_edge("finish", END)
