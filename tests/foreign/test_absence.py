"""How absent nodes and seats abstain, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypedDict

import pytest
from foreign.applications import ask_node, chain, pool, said
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import CachePolicy, Command, RetryPolicy, Send, interrupt
from pydantic import BaseModel
from scripted import Scripted

from collabsim import SeatModel, from_graph, make_item
from collabsim.errors import ConfigError, ProtocolError
from collabsim.nodes.current_run import CURRENT_RUN

ITEM = make_item("What is 2 + 3?", "5")


class Text(TypedDict, total=False):
    draft: str
    answer: str


def draft_and_answer(draft: Any, answer: Any, state: type = Text) -> StateGraph:
    graph = StateGraph(state)
    graph.add_node("drafter", draft)
    graph.add_node("answerer", answer)
    graph.add_edge(START, "drafter")
    graph.add_edge("drafter", "answerer")
    graph.add_edge("answerer", END)
    return graph


def drafts(state):
    return {"draft": "Answer: 4"}


def answers(state):
    return {"answer": "Answer: 5"}


def text_system(graph, **settings):
    how = {"input": lambda item: {"draft": item.messages[-1].content}, "output": lambda state: state["answer"]}
    return from_graph(graph, **{**how, **settings})


def final(system, present):
    episode = system.run(ITEM, present)
    assert episode.error is None, episode.error
    return [output.text for output in episode.final]


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("skip", []),
        ("pass", []),
        ({"answer": "Answer: 1"}, ["Answer: 1"]),
        (Command(update={"answer": "Answer: 2"}), ["Answer: 2"]),
        (lambda state: {"answer": state["draft"]}, ["Answer: 4"]),
    ],
    ids=["skip", "pass", "update", "command", "function"],
)
def test_a_node_abstains_as_its_rule_says(rule, text):
    system = text_system(draft_and_answer(drafts, answers), absent={"answerer": rule})
    assert final(system, ["drafter", "answerer"]) == ["Answer: 5"]
    assert final(system, ["drafter"]) == text


def test_a_function_in_a_node_s_place_gets_what_langgraph_gives_to_nodes():
    async def instead(state: Text, config: RunnableConfig, runtime: Runtime[dict[str, str]]):
        return {"answer": f"Answer: {runtime.context['known']} {config['metadata']['langgraph_node']}"}

    graph = draft_and_answer(drafts, answers)
    system = text_system(graph, absent={"answerer": instead}, context={"known": "9"})
    assert final(system, []) == ["Answer: 9 answerer"]


def test_pass_hands_on_what_a_worker_was_sent():
    class Notes(TypedDict, total=False):
        notes: Annotated[list[str], lambda left, right: [*left, *right]]
        topic: str

    graph = StateGraph(Notes)
    graph.add_node("worker", lambda job: {"notes": ["worked"], "topic": "done"})
    graph.add_conditional_edges(START, lambda state: [Send("worker", {"topic": "sums", "private": 1})], ["worker"])
    system = from_graph(
        graph,
        input=lambda item: {"notes": ["given"]},
        output=lambda state: f"{state['topic']} {state['notes']}",
        absent={"worker": "pass"},
    )
    assert final(system, ["worker"]) == ["done ['given', 'worked']"]
    assert final(system, []) == ["sums ['given']"]


class Sheet(BaseModel):
    question: str
    draft: str = ""
    answer: str = ""


class StrictSheet(BaseModel):
    question: str
    draft: str
    answer: str = ""


@dataclass
class Card:
    question: str
    draft: str = ""
    answer: str = field(default="")


@pytest.mark.parametrize("state", [Sheet, Card])
@pytest.mark.parametrize("rule", ["skip", "pass"])
def test_pydantic_and_dataclass_states_are_toggled_like_dictionaries(state, rule):
    def answer(sheet):
        assert isinstance(sheet, state)
        return {"answer": sheet.draft or "Answer: none"}

    graph = draft_and_answer(drafts, answer, state)
    how = {"input": lambda item: {"question": item.id}, "output": lambda state: state["answer"]}
    system = from_graph(graph, absent={"drafter": rule}, **how)
    assert final(system, ["drafter", "answerer"]) == ["Answer: 4"]
    assert final(system, ["answerer"]) == ["Answer: none"]


def test_a_model_s_required_field_that_nobody_wrote_is_named():
    graph = draft_and_answer(drafts, lambda sheet: {"answer": sheet.draft}, StrictSheet)
    how = {"input": lambda item: {"question": item.id}, "output": lambda state: state["answer"]}

    class Start(BaseModel):
        question: str

    start = StateGraph(StrictSheet, input_schema=Start)
    start.add_node("drafter", lambda sheet: {"draft": "Answer: 4"}, input_schema=Start)
    start.add_node("answerer", graph.nodes["answerer"].runnable)
    start.add_edge(START, "drafter")
    start.add_edge("drafter", "answerer")
    system = from_graph(start, **how)
    assert final(system, ["drafter", "answerer"]) == ["Answer: 4"]
    with pytest.raises(ProtocolError, match=r"with \['drafter'\] off nobody wrote the state's key 'draft'"):
        system.run(ITEM, ["answerer"])


def test_a_key_that_an_absent_node_was_to_write_is_named_with_what_to_declare():
    graph = draft_and_answer(drafts, lambda state: {"answer": state["draft"]})
    system = text_system(graph, input=lambda item: {"answer": ""})
    with pytest.raises(ProtocolError, match=r"nobody wrote the state's key 'draft'.*absent=\{'drafter': \{'draft'"):
        system.run(ITEM, ["answerer"])


def test_a_node_s_own_key_error_is_a_failed_run_and_no_reason_to_stop():
    def breaks(state):
        return {}["draft" if CURRENT_RUN.get() is None else "no key of the state"]

    episode = text_system(draft_and_answer(drafts, breaks)).run(ITEM, ["answerer"])
    assert (episode.outcome, episode.error.kind) == (None, "KeyError")


def routed(node: Any, **how: Any) -> StateGraph:
    graph = StateGraph(MessagesState)
    graph.add_node("router", node, **how)
    graph.add_node("one", lambda state: said("Answer: 1"))
    graph.add_node("two", lambda state: said("Answer: 2"))
    graph.add_edge(START, "router")
    return graph


def to_two(state) -> Command[Literal["one", "two"]]:
    return Command(goto="two")


@pytest.mark.parametrize("rule", [None, "skip", "pass", {"messages": []}, Command(update={"messages": []})])
def test_a_router_by_command_that_would_leave_the_run_without_a_way_on_is_refused(rule):
    absent = {} if rule is None else {"router": rule}
    with pytest.raises(ConfigError, match=r"among \['one', 'two'\] by Command.*'goto:one'"):
        from_graph(routed(to_two), absent=absent)


@pytest.mark.parametrize(
    "rule", ["goto:one", Command(goto="one"), lambda state: Command(goto="one")], ids=["word", "command", "function"]
)
def test_a_router_by_command_goes_where_its_rule_says(rule):
    system = from_graph(routed(to_two), players=["router"], absent={"router": rule})
    assert final(system, ["router"]) == ["Answer: 2"]
    assert final(system, []) == ["Answer: 1"]


def test_a_command_that_the_node_did_not_declare_is_refused_when_it_is_met():
    system = from_graph(routed(lambda state: Command(goto="two")), players=["router"])
    with pytest.raises(ProtocolError, match="'router' chooses the next node by Command"):
        system.run(ITEM)


def test_a_seat_that_is_off_in_a_router_that_declares_no_command_is_found():
    seat = SeatModel("a")

    async def route(state):
        await seat.ainvoke("Where to?")
        return Command(goto="two")

    system = from_graph(routed(route), pool("a"), players=["a"])
    assert final(system, []) == []  # so far it looks like a node that ends the run
    with pytest.raises(ProtocolError, match="'router' chooses the next node by Command"):
        system.run(ITEM, ["a"])


def test_a_conditional_edge_that_needs_the_absent_update_is_refused_with_what_to_declare():
    class Graded(TypedDict, total=False):
        grade: str

    graph = StateGraph(Graded)
    graph.add_node("grader", lambda state: {"grade": "good"})
    graph.add_node("end", lambda state: None)
    graph.add_edge(START, "grader")
    graph.add_conditional_edges("grader", lambda state: {"good": "end"}[state["grade"]], ["end"])
    how = {"input": lambda item: {}, "output": lambda state: state["grade"]}
    with pytest.raises(ProtocolError, match=r"'grader' is off.*cannot choose without its update \(KeyError: 'grade'"):
        from_graph(graph, players=["grader"], **how).run(ITEM, [])
    assert final(from_graph(graph, absent={"grader": {"grade": "good"}}, **how), []) == ["good"]


def test_a_fan_out_over_nothing_because_its_planner_is_off_is_refused():
    class Jobs(TypedDict, total=False):
        jobs: Annotated[list[str], lambda left, right: [*left, *right]]

    graph = StateGraph(Jobs)
    graph.add_node("planner", lambda state: {"jobs": ["x"]})
    graph.add_node("worker", lambda job: None)
    graph.add_edge(START, "planner")
    graph.add_conditional_edges("planner", lambda state: [Send("worker", job) for job in state["jobs"]], ["worker"])
    system = from_graph(graph, input=lambda item: {}, output=lambda state: "Answer: 5")
    with pytest.raises(ProtocolError, match=r"cannot choose without its update \(it returned \[\]\)"):
        system.run(ITEM, ["worker"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"players": ["ask-c"]}, "no node and no seat 'ask-c' .did you mean 'ask-"),
        ({"players": ["ask-a", "ask-a"]}, "expected distinct names"),
        ({"players": []}, "at least one"),
        ({"players": "ask-a"}, "players: expected a list of names or None, got 'ask-a'"),
        ({"players": ["seat:x"]}, "no seat 'x'"),
        ({"absent": {"ask-a": "skpi"}}, r"expected one of skip, pass.*did you mean 'skip'"),
        ({"absent": {"ask-a": "unavailable"}}, "this node is no ToolNode"),
        ({"absent": {"ask-a": "goto:ask-z"}}, "no node 'ask-z'"),
        ({"absent": {"ask-a": {"mesages": []}}}, "no key 'mesages' .did you mean 'messages'"),
        ({"absent": {"a": 3}}, "what is said in the seat's place"),
        ({"on_limit": "zero"}, "on_limit"),
        ({"recursion_limit": 0}, "expected at least 1 step"),
        ({"memory": True}, "a StateGraph has no checkpointer"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_nearest_name(settings, message):
    with pytest.raises(ConfigError, match=message):
        from_graph(chain("a", "b"), pool("a", "b"), **settings)


def test_a_name_that_is_a_node_and_a_seat_must_say_which():
    graph = StateGraph(MessagesState)
    graph.add_node("a", ask_node("a"))
    graph.add_edge(START, "a")
    with pytest.raises(ConfigError, match="write 'node:a' or 'seat:a'"):
        from_graph(graph, pool("a"), players=["a"])
    both = from_graph(graph, pool("a"), players=["node:a", "seat:a"])
    assert both.players == ("node:a", "seat:a")
    assert both.run(ITEM, ["node:a"]).calls == both.run(ITEM, ["seat:a"]).calls == ()


def test_an_application_of_another_kind_is_refused():
    @entrypoint()
    def flow(question):
        return question

    with pytest.raises(ConfigError, match="got Pregel; graphs of LangGraph's functional API"):
        from_graph(flow)


def test_a_state_without_messages_needs_input_and_output():
    with pytest.raises(ConfigError, match="give input="):
        from_graph(draft_and_answer(drafts, answers), output=lambda state: "")
    with pytest.raises(ConfigError, match="give output="):
        from_graph(draft_and_answer(drafts, answers), input=lambda item: {})


def test_the_default_output_is_what_was_said_in_the_run_and_not_an_example_in_the_prompt():
    graph = StateGraph(MessagesState)
    graph.add_node("silent", lambda state: None)
    graph.add_edge(START, "silent")
    system = from_graph(graph, input=None)
    given = system.application.input(ITEM.view)
    assert [message.type for message in given["messages"]] == ["human"]
    shown = {"messages": [*given["messages"], AIMessage("Answer: 7", id="item-1")]}
    assert system.application.output(shown) is None


def test_cache_and_retries_of_the_application_take_no_part_in_runs():
    tries = []

    def fails(state):
        tries.append(1)
        raise ConnectionError("down")

    graph = StateGraph(MessagesState)
    graph.add_node("ask", ask_node("a"), cache_policy=CachePolicy())
    graph.add_node("fails", fails, retry_policy=RetryPolicy(initial_interval=0, jitter=False))
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "fails")
    system = from_graph(graph.compile(cache=InMemoryCache()), {"a": Scripted("a", "Answer: 5")})
    assert final(system, ["ask"]) == ["Answer: 5"]
    assert final(system, []) == []  # LangGraph's cache would have said what it said before
    assert system.run(ITEM).error.kind == "ConnectionError"
    assert len(tries) == 1


def test_a_checkpointer_is_used_only_when_asked_for_and_then_with_a_thread_for_each_run():
    saver = InMemorySaver()
    app = chain("a").compile(checkpointer=saver)
    from_graph(app, pool("a")).run(ITEM)
    assert saver.storage == {}
    kept = from_graph(app, pool("a"), memory=True)
    assert kept.run(ITEM).outcome == kept.run(ITEM).outcome
    assert len(saver.storage) == 2


def test_an_application_that_waits_for_somebody_is_refused():
    graph = StateGraph(MessagesState)
    graph.add_node("human", lambda state: said(interrupt("Well?")))
    graph.add_edge(START, "human")
    with pytest.raises(ProtocolError, match="interrupts itself"):
        from_graph(graph).run(ITEM)


def test_players_on_no_path_to_the_output_are_reported():
    graph = chain("a")
    graph.add_node("orphan", ask_node("b"))
    graph.add_node("after-orphan", ask_node("b"))
    graph.add_edge("orphan", "after-orphan")
    graph.add_edge("after-orphan", END)
    system = from_graph(graph, pool("a", "b"))
    assert system.off_path == ("orphan", "after-orphan")
    assert system.meanings()["off_path"] == ["orphan", "after-orphan"]


def test_a_node_that_may_be_reached_by_an_undeclared_command_is_not_reported():
    system = from_graph(routed(lambda state: Command(goto="two")), players=["one", "two"])
    assert system.off_path == ()


def test_a_seat_that_is_off_where_nothing_can_abstain_is_refused():
    seat = SeatModel("a")

    async def route(state):
        await seat.ainvoke("Go on?")
        return "end"

    graph = StateGraph(MessagesState)
    graph.add_node("end", lambda state: said("Answer: 5"))
    graph.add_conditional_edges(START, route, ["end"])
    system = from_graph(graph, pool("a"), players=["a"])
    assert final(system, ["a"]) == ["Answer: 5"]
    with pytest.raises(ProtocolError, match=r"seat 'a' is off and was asked where nothing can abstain"):
        system.run(ITEM, [])
    assert final(from_graph(graph, pool("a"), players=["a"], absent={"a": "yes"}), []) == ["Answer: 5"]


def test_a_node_that_always_abstains_is_worth_nothing_in_every_coalition():
    graph = chain("a")
    graph.add_node("idle", lambda state: None)
    graph.add_edge(START, "idle")
    system = from_graph(graph, pool("a"))
    for others in ([], ["ask-a"]):
        assert system.run(ITEM, [*others, "idle"]).final == system.run(ITEM, others).final


def test_two_nodes_that_do_the_same_are_worth_the_same_in_every_coalition():
    graph = StateGraph(MessagesState)
    for name in ("left", "right"):
        graph.add_node(name, ask_node("a"))
        graph.add_edge(START, name)
        graph.add_edge(name, END)
    system = from_graph(graph, {"a": Scripted("a", "Answer: 5")})
    assert system.run(ITEM, ["left"]).final == system.run(ITEM, ["right"]).final
    assert [call.draw for call in system.run(ITEM, ["left"]).calls] == [0]
    assert sorted(call.draw for call in system.run(ITEM).calls) == [0, 1]
