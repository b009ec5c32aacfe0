"""Blackboard: seats post to a board that all of them read, until enough of them agree.

The opening answers are the first posts. In each later round every seat reads the same board, which holds the posts of all
rounds so far, and adds one. It ends when `quorum` seats agree (at most as many as have an answer, so that a small
coalition, or a silent member, cannot keep it going), or after the last round; the most frequent of the last answers is
final. Posts without an answer are not shown. (After the blackboard systems of Hayes-Roth 1985, without a planner.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from langgraph.graph import StateGraph
from pydantic import Field

from collabsim.context import RunContext
from collabsim.episode import Reply
from collabsim.nodes.quoting import check_placeholder, fill, quote_all, with_answers
from collabsim.nodes.state import State, last_replies, slot
from collabsim.nodes.voting import leading
from collabsim.playground import playground_graph
from collabsim.protocols import protocol
from collabsim.request import Messages, with_text

from .endings import end_by_vote
from .rounds import add_round, new_graph

POST = (
    "On a shared board stand these posts, oldest first:\n\n{board}\n\n"
    "Correct what is wrong or carry it a step further, then give your answer."
)


def settled(state: State, run: RunContext, quorum: int) -> bool:
    """Whether min(quorum, seats with an answer) of the last answers agree."""
    last = with_answers(last_replies(state, run), run)
    return leading(last.values(), run.answers)[1] >= min(quorum, len(last))


@dataclass(frozen=True, slots=True)
class ReadBoard:
    """The question with the board's posts: the same for every seat of a round."""

    text: str
    """Words around `{board}`."""
    rounds: int
    """Rounds whose posts are on the board."""
    quorum: int
    most_posts: int
    quote_limit: int

    def __post_init__(self) -> None:
        check_placeholder(self.text, "board")

    def __call__(self, state: State, run: RunContext) -> Messages | None:
        """None for a single present seat, and when the board is settled (an empty one is)."""
        if run.alone or settled(state, run, self.quorum):
            return None
        posts = quote_all(self.posts(state, run)[-self.most_posts :], label="Post", limit=self.quote_limit)
        return with_text(run.item.messages, fill(self.text, board=posts))

    def posts(self, state: State, run: RunContext) -> list[Reply]:
        """All posts with an answer, by round, in the run's order of seats."""
        replies = state.get("replies", {})
        of_round = [
            {seat: replies[place] for seat in run.order if (place := slot(seat, draw)) in replies}
            for draw in range(self.rounds)
        ]
        return [post for posted in of_round for post in with_answers(posted, run).values()]


@protocol(
    family="text",
    absent="an absent seat posts nothing; no more seats need to agree than have an answer",
    calls=lambda present, *, rounds, **_: present if present <= 1 else present * rounds,
)
def blackboard(
    seats: Sequence[str],
    *,
    rounds: Annotated[int, Field(ge=1)] = 3,
    quorum: Annotated[int, Field(ge=1)] = 2,
    most_posts: Annotated[int, Field(ge=1)] = 16,
    quote_limit: Annotated[int, Field(ge=20)] = 1000,
    post: str = POST,
) -> StateGraph[Any, Any, Any, Any]:
    """Seats post to a shared board for up to `rounds` rounds, until `quorum` of them agree; then a vote."""
    graph = new_graph()
    last = add_round(graph, seats)
    for draw in range(1, rounds):
        prompt = ReadBoard(post, draw, quorum, most_posts, quote_limit)
        last = add_round(graph, seats, draw=draw, prompt=prompt, after=last)
    end_by_vote(graph, last)
    return graph


graph = playground_graph(blackboard)
