"""Small applications of the kinds that people build with LangGraph, on seats."""

from __future__ import annotations

import operator
import warnings
from typing import Annotated, Any, Literal, TypedDict

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send

from collabsim import Pool, SeatModel, SimulatedModel

SKILLS = {"a": 1.0, "b": -1.0, "c": 0.5}


def pool(*names: str, conformity: float = 0.5) -> Pool:
    return Pool({name: SimulatedModel(name=name, skill=SKILLS.get(name, 0.0), conformity=conformity) for name in names})


def ask_node(seat: str, *, name: str | None = None, sync: bool = False):
    """A node that asks a seat about the conversation so far."""
    model = SeatModel(seat)

    async def node(state: MessagesState):
        return {"messages": [(await model.ainvoke(state["messages"])).model_copy(update={"name": name or seat})]}

    def sync_node(state: MessagesState):
        return {"messages": [model.invoke(state["messages"]).model_copy(update={"name": name or seat})]}

    return sync_node if sync else node


def multiply(first: int, second: int) -> int:
    """The product of two numbers."""
    return first * second


def react_agent(seat: str = "solver") -> Any:
    """LangGraph's own agent with one tool."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from langgraph.prebuilt import create_react_agent

        return create_react_agent(SeatModel(seat), [multiply], prompt="You have tools.", name="calculator")


def supervisor() -> StateGraph:
    """A supervisor that sends the conversation to two teams in turn, one of them a graph, and then stops."""

    def choose(state: MessagesState) -> Command[Literal["solver", "team", "__end__"]]:
        done = [message.name for message in state["messages"] if message.type == "ai"]
        return Command(goto=next((team for team, who in (("solver", "a"), ("team", "c")) if who not in done), END))

    async def solver(state: MessagesState) -> Command[Literal["supervisor"]]:
        return Command(update=await ask_node("a")(state), goto="supervisor")

    team = StateGraph(MessagesState)
    team.add_node("draft", ask_node("b"))
    team.add_node("finish", ask_node("c", sync=True))
    team.add_edge(START, "draft")
    team.add_edge("draft", "finish")
    team.add_edge("finish", END)

    graph = StateGraph(MessagesState)
    graph.add_node("supervisor", choose)
    graph.add_node("solver", solver)
    graph.add_node("team", team.compile())
    graph.add_edge(START, "supervisor")
    graph.add_edge("team", "supervisor")
    return graph


def visit_once(state: MessagesState) -> Command:
    """In the supervisor's place: straight to the solver, then to the end."""
    spoke = any(message.type == "ai" for message in state["messages"])
    return Command(goto=END if spoke else "solver")


class Research(TypedDict, total=False):
    question: str
    angles: list[str]
    notes: Annotated[list[str], operator.add]
    report: str


class Angle(TypedDict):
    question: str
    angle: str


def map_reduce() -> StateGraph:
    """A planner, a fan-out of researchers by Send, a writer."""
    researcher, writer = SeatModel("a"), SeatModel("b")

    def plan(state: Research):
        return {"angles": ["Add it up.", "Estimate first.", "Look for a trap."]}

    async def research(job: Angle):
        return {"notes": [(await researcher.ainvoke(f"{job['question']}\n\n{job['angle']}")).text]}

    def write(state: Research):
        notes = "\n\n".join("> " + note.replace("\n", "\n> ") for note in state.get("notes", []))
        return {"report": writer.invoke(f"{state['question']}\n\n{notes}" if notes else state["question"]).text}

    def fan_out(state: Research):
        return [Send("research", {"question": state["question"], "angle": angle}) for angle in state["angles"]]

    graph = StateGraph(Research)
    graph.add_node("plan", plan)
    graph.add_node("research", research)
    graph.add_node("write", write)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", fan_out, ["research"])
    graph.add_edge("research", "write")
    graph.add_edge("write", END)
    return graph


def question_of(item: Any) -> Research:
    return {"question": item.messages[-1].content}


def report_of(state: Research) -> str:
    return state["report"]


def first_note(state: Research) -> Research:
    """In the writer's place."""
    return {"report": next(iter(state.get("notes", [])), "")}


READ: dict[str, Any] = {"input": question_of, "output": report_of}
ABSENT: dict[str, Any] = {"plan": {"angles": ["Add it up."]}, "write": first_note}


def chain(*seats: str, sync: bool = False) -> StateGraph:
    """Nodes named `ask-<seat>`, one after the other, on messages."""
    graph = StateGraph(MessagesState)
    names = [f"ask-{seat}" for seat in seats]
    for name, seat in zip(names, seats, strict=True):
        graph.add_node(name, ask_node(seat, sync=sync))
    for start, end in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(start, end)
    return graph


def said(text: str) -> dict[str, Any]:
    return {"messages": [AIMessage(text)]}


def asked(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}
