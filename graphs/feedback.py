"""Feedback: seats answer, critics comment on each answer, its author revises.

Who has an answer comments on the answers of others: each author gets the next `critics` of them in the run's order, or
all when there are fewer, so that everyone criticises and is criticised alike. Authors without comments keep their
answer. The end is a vote, or a judge that reads the last answers. Comments that say nothing are not shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from langgraph.graph import StateGraph
from pydantic import Field

from collabsim.context import RunContext
from collabsim.episode import Reply
from collabsim.nodes.asking import ask
from collabsim.nodes.current_run import context_of
from collabsim.nodes.quoting import check_placeholder, fill, quote, quote_all, with_answers, with_words
from collabsim.nodes.state import Replies, State, last_replies, merge, slot
from collabsim.playground import playground_graph
from collabsim.protocols import protocol
from collabsim.request import Message, Messages, with_text

from .debate import JUDGE
from .endings import ReadAnswers, end_by_role, end_by_vote
from .rounds import add_round, join, new_graph

COMMENT = "This answer was given:\n\n{answer}\n\nSay in a few sentences what is right and what is wrong about it."
REVISE = "Others commented on your answer:\n\n{comments}\n\nTake up what is right in it, then give your final answer."


class FeedbackState(State, total=False):
    """The shared state, and the comments by `slot(AUTHOR<CRITIC, draw)`."""

    comments: Annotated[Replies, merge]


def comment_slot(author: str, critic: str, draw: int) -> str:
    """The key of a comment; no seat's name contains `<`."""
    return slot(f"{author}<{critic}", draw)


def critics_of(author: str, authors: Sequence[str], count: int) -> list[str]:
    """The next `count` authors after this one, round in a circle: its critics; all others when they are fewer."""
    place = authors.index(author)
    return [*authors[place + 1 :], *authors[:place]][:count]


@dataclass(frozen=True, slots=True)
class Comment:
    """The node in which one seat comments on the answers that fall to it."""

    node: str
    seat: str
    draw: int
    text: str
    critics: int
    quote_limit: int

    def __post_init__(self) -> None:
        check_placeholder(self.text, "answer")

    async def __call__(self, state: FeedbackState, runtime: Any) -> dict[str, Replies] | None:
        """One call for each author, at once; nothing from a seat that is absent or has no answer of its own."""
        run = context_of(runtime)
        answers = with_answers(last_replies(state, run), run)
        if self.seat not in answers:
            return None
        answered = tuple(answers)
        authors = [author for author in answered if self.seat in critics_of(author, answered, self.critics)]
        comments = await asyncio.gather(
            *(
                ask(runtime, self.seat, self.prompt(run, answers[author]), draw=self.draw, node=self.node)
                for author in authors
            )
        )
        return {
            "comments": {
                comment_slot(author, self.seat, self.draw): reply
                for author, reply in zip(authors, comments, strict=True)
                if isinstance(reply, Reply)
            }
        }

    def prompt(self, run: RunContext, answer: Reply) -> Messages:
        """The question and one answer."""
        return with_text(run.item.messages, fill(self.text, answer=quote(answer.text, self.quote_limit)))


@dataclass(frozen=True, slots=True)
class ReviseByComments:
    """The prompt of an author: the question, its own answer, the comments on it."""

    seat: str
    comments_draw: int
    text: str
    quote_limit: int

    def __post_init__(self) -> None:
        check_placeholder(self.text, "comments")

    def __call__(self, state: FeedbackState, run: RunContext) -> Messages | None:
        """None when there is no comment with words."""
        comments = state.get("comments", {})
        places = {critic: comment_slot(self.seat, critic, self.comments_draw) for critic in run.order}
        shown = with_words({critic: comments[place] for critic, place in places.items() if place in comments})
        if not shown:
            return None
        own = last_replies(state, run)[self.seat]
        text = fill(self.text, comments=quote_all(shown.values(), label="Comment", limit=self.quote_limit))
        return with_text((*run.item.messages, Message("assistant", own.text)), text)


def calls(present: int, *, critics: int, rounds: int, final: str, **_: Any) -> int:
    """Upper bound of the calls of one run."""
    if present <= 1:
        return present
    return present * (1 + rounds * (min(critics, present - 1) + 1)) + (final == "judge")


@protocol(
    family="text",
    roles=("judge",),
    absent="an absent seat neither answers nor comments; its turns as a critic go to the next present seat",
    calls=calls,
)
def feedback(
    seats: Sequence[str],
    *,
    critics: Annotated[int, Field(ge=1)] = 3,
    rounds: Annotated[int, Field(ge=1)] = 1,
    final: Literal["vote", "judge"] = "vote",
    quote_limit: Annotated[int, Field(ge=20)] = 2000,
    comment: str = COMMENT,
    revise: str = REVISE,
    verdict: str = JUDGE,
) -> StateGraph[Any, Any, Any, Any]:
    """Seats answer, up to `critics` others comment on each answer, authors revise; `rounds` times."""
    graph = new_graph(FeedbackState)
    last = add_round(graph, seats)
    for draw in range(1, 2 * rounds, 2):
        commenting = [slot(f"{seat}-comments", draw) for seat in seats]
        for node, seat in zip(commenting, seats, strict=True):
            graph.add_node(node, Comment(node, seat, draw, comment, critics, quote_limit))
            join(graph, last, node)
        last = []
        for seat in seats:
            prompt = ReviseByComments(seat, draw, revise, quote_limit)
            last += add_round(graph, [seat], draw=draw + 1, prompt=prompt, after=commenting)
    if final == "vote":
        end_by_vote(graph, last)
    else:
        end_by_role(graph, last, role="judge", prompt=ReadAnswers(verdict, quote_limit), draw=2 * rounds + 1)
    return graph


graph = playground_graph(feedback)
