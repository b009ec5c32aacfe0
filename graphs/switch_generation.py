"""Switch generation: seats write one text in turns, a segment each.

The seat whose turn it is goes on where the text stops, with up to `segment` tokens; the first segment answers the task's
own messages. The text is done when a segment ends by itself and an answer stands in it, when every seat has had its
turns, or when a whole round adds nothing. A segment that was cut is taken back to its last whole word, and a segment that
says nothing passes the turn on. A single present seat answers by itself, in full. Works with any chat model: the text so
far is shown to each as its own reply. (After MoCo's method of this name, with turns in place of a
trained selector.)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from langgraph.graph import END, START, StateGraph
from pydantic import Field

from collabsim.context import RunContext
from collabsim.episode import Output, Reply
from collabsim.nodes.asking import ask
from collabsim.nodes.current_run import context_of
from collabsim.nodes.quoting import has_words
from collabsim.nodes.state import State
from collabsim.playground import playground_graph
from collabsim.protocols import protocol
from collabsim.request import Message, Messages, with_text

from .rounds import new_graph

GO_ON = "Continue exactly where your reply stops, without repeating any of it, and end with the answer."
_LAST_PIECE = re.compile(r"\s+\S*\Z")
_NO_BLANK_BEFORE = re.compile(r"[\s.,;:!?)\]}%]")


class TextState(State, total=False):
    """The shared state, and the text that is being written."""

    text: str
    finish: str
    """The finish of the last segment."""
    passed: int
    """Turns in a row that added nothing."""
    done: bool


def whole_words(text: str) -> str:
    """A cut text without its last, possibly incomplete word; a single word stays."""
    shorter = _LAST_PIECE.sub("", text)
    return shorter if shorter.strip() else text


def joined(text: str, segment: str) -> str:
    """A text and its continuation, with a blank between two words."""
    gap = "" if not text or text[-1].isspace() or _NO_BLANK_BEFORE.match(segment) else " "
    return f"{text}{gap}{segment}"


@dataclass(frozen=True, slots=True)
class Turn:
    """The node of one turn: the seat whose turn it is adds a segment."""

    node: str
    turn: int
    turns: int
    """Turns of each seat."""
    segment: int
    """Tokens of a segment."""
    go_on: str

    async def __call__(self, state: TextState, runtime: Any) -> dict[str, Any] | None:
        """Nothing when the text is done or every present seat has had its turns."""
        run = context_of(runtime)
        present = len(run.order)
        if state.get("done") or self.turn >= (1 if run.alone else present * self.turns):
            return None
        seat, draw = run.order[self.turn % present], self.turn // present
        text = state.get("text", "")
        length = {} if run.alone else {"max_tokens": self.segment}
        reply = await ask(runtime, seat, self.prompt(run, text), draw=draw, node=self.node, **length)
        assert isinstance(reply, Reply)  # the seat is present
        if run.alone:
            return {"text": reply.text, "finish": reply.finish, "done": True}
        return self._added(state, run, reply)

    def prompt(self, run: RunContext, text: str) -> Messages:
        """The question, and what is written so far as the seat's own reply."""
        if not text:
            return run.item.messages
        return with_text((*run.item.messages, Message("assistant", text)), self.go_on)

    def _added(self, state: TextState, run: RunContext, reply: Reply) -> dict[str, Any]:
        """The text with a segment; it is done when that ended by itself and there is an answer, or all passed."""
        passed = state.get("passed", 0) + 1
        if not has_words(reply):
            return {"passed": passed, "done": passed >= len(run.order)}
        segment = whole_words(reply.text) if reply.finish == "length" else reply.text
        text = joined(state.get("text", ""), segment)
        ended = reply.finish == "stop" and run.answers.extract(text, "stop") is not None
        return {"text": text, "finish": reply.finish, "passed": 0, "done": ended}


async def finish(state: TextState, runtime: Any) -> dict[str, Any]:  # noqa: ARG001 (a node)
    """The text is the final output; nothing when nobody wrote any."""
    text = state.get("text")
    return {"final": (Output(text, 1.0, state["finish"]),) if text else ()}


@protocol(
    family="routing",
    absent="an absent seat has no turn; the others keep theirs",
    calls=lambda present, *, turns, **_: present if present <= 1 else present * turns,
)
def switch_generation(
    seats: Sequence[str],
    *,
    segment: Annotated[int, Field(ge=1)] = 64,
    turns: Annotated[int, Field(ge=1)] = 4,
    go_on: str = GO_ON,
) -> StateGraph[Any, Any, Any, Any]:
    """Seats write one text in turns of `segment` tokens, at most `turns` turns each."""
    graph = new_graph(TextState)
    last = START
    for turn in range(len(seats) * turns):
        node = f"turn-{turn}"
        graph.add_node(node, Turn(node, turn, turns, segment, go_on))
        graph.add_edge(last, node)
        last = node
    graph.add_node("finish", finish)
    graph.add_edge(last, "finish")
    graph.add_edge("finish", END)
    return graph


graph = playground_graph(switch_generation)
