"""Three public kinds of applications, swept: a tool agent, a supervisor with a subgraph, a map-reduce research assistant."""

from __future__ import annotations

import json
import warnings
from itertools import combinations
from typing import Annotated

import pytest
from foreign.applications import ABSENT, READ, ask_node, map_reduce, pool, react_agent, supervisor, visit_once
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import create_react_agent
from langgraph.types import Command
from scripted import Scripted, last_words

from collabsim import SeatModel, Task, from_graph, make_item, sweep
from collabsim.errors import ConfigError, ProtocolError
from collabsim.testing import check_system, sample_items

ITEM = make_item("What is 6 times 7?", "42")


def calculates(request):
    """Calls the tool once, then answers with what it said."""
    said = last_words(request)
    if said.startswith("<tool_response>"):
        return f"Answer: {said.splitlines()[1]}"
    return f"<tool_call>{json.dumps({'name': 'multiply', 'arguments': {'first': 6, 'second': 7}})}</tool_call>"


def agent_system(**settings):
    return from_graph(react_agent(), {"solver": Scripted("calculator", calculates)}, **settings)


@pytest.mark.parametrize(
    ("coalition", "outcome", "n_calls"),
    [(["agent", "tools"], 1.0, 2), (["agent"], 0.0, 2), (["tools"], 0.0, 0), ([], 0.0, 0)],
)
def test_a_prebuilt_agent_runs_with_and_without_its_nodes(coalition, outcome, n_calls):
    episode = agent_system().run(ITEM, coalition)
    assert (episode.error, episode.outcome, len(episode.calls)) == (None, outcome, n_calls)


def test_an_absent_tool_node_answers_every_call_so_that_the_agent_can_go_on():
    episode = agent_system().run(ITEM, ["agent"])
    assert episode.final[0].text == "Answer: This tool is not available."


def test_the_agent_abstains_when_the_seat_it_asks_is_off():
    episode = agent_system(players=["solver", "tools"]).run(ITEM, ["tools"])
    assert (episode.error, episode.outcome, episode.final, episode.calls) == (None, 0.0, (), ())


def test_an_agent_that_calls_its_tool_for_ever_gives_no_answer():
    @RunnableLambda
    def ask_forever(_state):
        call = {"name": "multiply", "args": {"first": 1, "second": 1}, "id": "again", "type": "tool_call"}
        return {"messages": [AIMessage("", tool_calls=[call])]}

    graph = react_agent().builder  # with `remaining_steps` the agent itself would stop a step earlier, and say sorry
    graph.nodes["agent"].runnable = ask_forever
    episode = from_graph(graph, recursion_limit=6).run(ITEM)
    assert (episode.error, episode.final, len(episode.calls)) == (None, (), 0)
    strict = from_graph(graph, recursion_limit=6, on_limit="fail").run(ITEM)
    assert strict.error.kind == "GraphRecursionError"


def test_every_coalition_of_the_supervisor_has_a_value():
    check_system(from_graph(supervisor(), pool("a", "b", "c"), absent={"supervisor": visit_once}), sample_items(3))


def test_players_may_be_nodes_inside_a_graph_that_is_a_node_and_seats():
    players = ["team/draft", "solver", "a"]
    system = from_graph(supervisor(), pool("a", "b", "c"), players=players, recursion_limit=12)
    check_system(system, sample_items(2))
    without = system.run(sample_items(1)[0], ["solver", "a"])
    assert {call.seat for call in without.calls} == {"a", "c"}


def test_a_supervisor_without_a_stand_in_is_refused_with_what_to_write():
    with pytest.raises(ConfigError, match=r"'supervisor' chooses the next node.*absent=\{'supervisor': 'goto:"):
        from_graph(supervisor(), pool("a", "b", "c"))


def test_a_worker_that_always_goes_back_to_one_node_goes_there_when_it_is_off():
    system = from_graph(supervisor(), pool("a", "b", "c"), players=["solver"], recursion_limit=12)
    episode = system.run(sample_items(1)[0], [])
    # The supervisor asks the solver again and again: it has not answered. The limit ends that, without an error.
    assert episode.error is None
    assert episode.final == ()


def test_an_agent_hands_the_conversation_over_to_another_by_a_tool():
    @tool
    def to_writer(tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
        """Hand over to the writer."""
        handed = ToolMessage("handed over", tool_call_id=tool_call_id)
        return Command(graph=Command.PARENT, goto="writer", update={"messages": [handed]})

    def hands_over(_request):
        return '<tool_call>{"name": "to_writer", "arguments": {}}</tool_call>'

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        desk = create_react_agent(SeatModel("a"), [to_writer], name="desk")
    graph = StateGraph(MessagesState)
    graph.add_node("desk", desk, destinations=("writer", END))
    graph.add_node("writer", ask_node("b"))
    graph.add_edge(START, "desk")
    models = {"a": Scripted("a", hands_over), "b": Scripted("b", "Answer: 42")}
    with pytest.raises(ConfigError, match="'desk' chooses the next node"):
        from_graph(graph, models)
    system = from_graph(graph, models, absent={"desk": "goto:writer"})
    assert [call.seat for call in system.run(ITEM).calls] == ["a", "b"]
    assert system.run(ITEM).outcome == system.run(ITEM, ["writer"]).outcome == 1.0
    assert system.run(ITEM, ["desk"]).final == ()


def test_every_coalition_of_the_map_reduce_has_a_value():
    check_system(from_graph(map_reduce(), pool("a", "b"), absent=ABSENT, **READ), sample_items(3))
    both = ["a", "b", "plan"]
    check_system(from_graph(map_reduce(), pool("a", "b"), players=both, absent=ABSENT, **READ), sample_items(3))


def test_a_planner_whose_update_the_fan_out_reads_cannot_be_skipped():
    system = from_graph(map_reduce(), pool("a", "b"), **READ)
    with pytest.raises(ProtocolError, match=r"'plan' is off, and the conditional edge after it cannot choose"):
        system.run(sample_items(1)[0], ["research", "write"])


def test_a_given_update_stands_in_for_the_planner():
    system = from_graph(map_reduce(), pool("a", "b"), absent=ABSENT, **READ)
    item = sample_items(1)[0]
    assert len(system.run(item).calls) == 3 + 1
    assert len(system.run(item, ["research", "write"]).calls) == 1 + 1
    assert [call.node for call in system.run(item, ["plan", "research"]).calls] == ["research"] * 3


def test_the_application_itself_stays_as_it_is():
    builder = map_reduce()
    app = builder.compile()
    before = [dict(builder.nodes), set(builder.edges), {name: dict(found) for name, found in builder.branches.items()}]
    runnables = {name: spec.runnable for name, spec in builder.nodes.items()}
    bound = {name: node.bound for name, node in app.nodes.items()}
    from_graph(app, pool("a", "b"), absent=ABSENT, **READ).run(sample_items(1)[0], ["plan"])
    assert [dict(builder.nodes), set(builder.edges), dict(builder.branches)] == before
    assert {name: spec.runnable for name, spec in builder.nodes.items()} == runnables
    assert {name: node.bound for name, node in app.nodes.items()} == bound


def test_a_system_makes_one_graph_for_all_of_its_coalitions():
    system = from_graph(map_reduce(), pool("a", "b"), absent=ABSENT, **READ)
    graph = system.graph
    for present in combinations(system.players, 2):
        system.run(sample_items(1)[0], present)
    assert system.graph is graph is system.replace("a", Scripted("other", "Answer: 1")).graph


def test_another_model_in_a_seat_speaks_without_anything_being_rebuilt():
    item = sample_items(1)[0]
    system = from_graph(map_reduce(), pool("a", "b"), absent=ABSENT, **READ)
    swapped = system.replace("b", Scripted("oracle", f"Answer: {item.gold}"))
    assert swapped.run(item).outcome == 1.0


def test_a_sweep_reports_nodes_without_own_answers_and_seats_with_them():
    items = sample_items(6)
    task = Task("sums and products", tuple(items))
    system = from_graph(map_reduce(), pool("a", "b"), players=["plan", "research", "b"], absent=ABSENT, **READ)
    values = sweep(system, task, method="exact").values
    assert abs(values["efficiency_gap"]) < 1e-9
    assert values["paired"] is True
    assert values["individual"]["plan"] is None
    assert values["individual"]["b"]["n_items"] == 6
    assert values["definitions"]["absent_nodes"]["plan"] == "{'angles': ['Add it up.']}"
