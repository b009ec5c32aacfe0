"""Two applications on seats, as a user's file that the configs beside it name."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, MessagesState, StateGraph

from collabsim import SeatModel


def _asks(seat: str) -> Any:
    model = SeatModel(seat)

    async def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    return node


def make_chain() -> StateGraph:
    """Three nodes one after the other, on messages."""
    graph = StateGraph(MessagesState)
    for name, seat in (("first", "a"), ("second", "b"), ("third", "a")):
        graph.add_node(name, _asks(seat))
    for start, end in ((START, "first"), ("first", "second"), ("second", "third"), ("third", END)):
        graph.add_edge(start, end)
    return graph


class Notes(TypedDict, total=False):
    """A question, what was noted on it, a report."""

    question: str
    notes: Annotated[list[str], operator.add]
    report: str


def make_notes() -> StateGraph:
    """A draft, then a report that reads it."""
    drafter, writer = SeatModel("a"), SeatModel("b")

    async def draft(state: Notes) -> Notes:
        return {"notes": [(await drafter.ainvoke(state["question"])).text]}

    async def write(state: Notes) -> Notes:
        notes = "\n\n".join("> " + note.replace("\n", "\n> ") for note in state.get("notes", []))
        return {"report": (await writer.ainvoke(f"{state['question']}\n\n{notes}".strip())).text}

    graph = StateGraph(Notes)
    graph.add_node("draft", draft)
    graph.add_node("write", write)
    graph.add_edge(START, "draft")
    graph.add_edge("draft", "write")
    graph.add_edge("write", END)
    return graph


def question_of(item: Any) -> Notes:
    """The first state of a run."""
    return {"question": item.messages[-1].content}


def report_of(state: Notes) -> str:
    """The answer of a run."""
    return state.get("report", "")


def no_note(state: Notes) -> Notes:
    """In the drafter's place."""
    return {"notes": []}


def first_note(state: Notes) -> Notes:
    """In the writer's place."""
    return {"report": next(iter(state.get("notes", [])), "")}


app = make_chain().compile()
notes = make_notes().compile()
