"""What is each node of an existing LangGraph application worth? A research assistant, measured as it stands.

Up to the line of dashes this is an ordinary application; only its models are `SeatModel`s. Its models are simulated here;
`openai:`, `hub:` or any LangChain chat model may stand in their place.
"""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from collabsim import Pool, SeatModel, SimulatedModel, System, from_graph, load_task, sweep

researcher, writer, critic = SeatModel("researcher"), SeatModel("writer"), SeatModel("critic")


class State(TypedDict, total=False):
    """What the nodes share."""

    question: str
    angles: list[str]
    notes: Annotated[list[str], operator.add]
    draft: str
    final: str


class Angle(TypedDict):
    """What one researcher is sent."""

    question: str
    angle: str


def plan(state: State) -> State:  # noqa: ARG001 (LangGraph's types want this name)
    """Three ways to go about the question."""
    return {"angles": ["Work it out step by step.", "Estimate first.", "Try to find a trap in it."]}


def fan_out(state: State) -> list[Send]:
    """A researcher for each angle."""
    return [Send("research", {"question": state["question"], "angle": angle}) for angle in state["angles"]]


async def research(state: Angle) -> State:
    """A note from one angle."""
    reply = await researcher.ainvoke(f"{state['question']}\n\n{state['angle']}")
    return {"notes": [reply.text]}


def quoted(texts: list[str]) -> str:
    """Texts as quotations."""
    return "\n\n".join("> " + text.replace("\n", "\n> ") for text in texts)


def write(state: State) -> State:
    """A draft from the notes."""
    notes = quoted(state.get("notes", []))
    told = f"{state['question']}\n\nNotes:\n\n{notes}\n\nAnswer from these notes." if notes else state["question"]
    return {"draft": writer.invoke(told).text}


def review(state: State) -> State:
    """A last look at the draft."""
    told = f"{state['question']}\n\nA draft:\n\n{quoted([state['draft']])}\n\nCorrect it where it is wrong."
    return {"final": critic.invoke(told).text}


graph = StateGraph(State)
graph.add_node("plan", plan)
graph.add_node("research", research)
graph.add_node("write", write)
graph.add_node("review", review)
graph.add_edge(START, "plan")
graph.add_conditional_edges("plan", fan_out, ["research"])
graph.add_edge("research", "write")
graph.add_edge("write", "review")
graph.add_edge("review", END)
app = graph.compile()

# ----------------------------------------------------------------------------------------------------------------------


def first_state(item: Any) -> State:
    """What the application is given: the item as the task words it."""
    return {"question": item.messages[-1].content}


def answer(state: State) -> str:
    """What is read at the end: the reviewed text, or the draft when nobody reviews."""
    return state.get("final") or state["draft"]


def first_note(state: State) -> State:
    """In the writer's place: a note as it is."""
    return {"draft": next(iter(state.get("notes", [])), "")}


POOL = Pool(
    researcher=SimulatedModel(name="researcher", skill=0.5),
    writer=SimulatedModel(name="writer", skill=-0.5, conformity=0.9),
    critic=SimulatedModel(name="critic", skill=1.0, conformity=0.6),
)
ABSENT = {"plan": {"angles": ["Work it out step by step."]}, "write": first_note}  # the others are skipped


def measured(players: list[str] | None = None) -> System:
    """The application as a system whose players are these nodes or seats; None: every node."""
    return from_graph(app, POOL, players=players, input=first_state, output=answer, absent=ABSENT)


def main() -> None:
    """The worth of every node, then of every model."""
    task = load_task("reasoning_gym:chain_sum", options={"min_terms": 2, "max_terms": 3}, limit=40, seed=1)
    for players in (["plan", "research", "write", "review"], ["researcher", "writer", "critic"]):
        result = sweep(measured(players), task, method="exact")
        for name, estimate in result.shapley.items():
            print(f"{name:<12}{estimate.value:7.3f} [{estimate.interval.low:.3f}, {estimate.interval.high:.3f}]")
        print(f"generated {result.cost.generated}, reused {result.cost.reused}\n")


if __name__ == "__main__":
    main()
