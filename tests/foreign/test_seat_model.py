"""`SeatModel`: the seat of a run as a LangChain chat model."""

from __future__ import annotations

import asyncio
import threading

import pytest
from foreign.applications import ask_node, chain, pool, said
from langchain_core.language_models import BaseChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from pydantic import BaseModel
from scripted import Scripted

from collabsim import GenerationStore, Pool, Sampling, Seat, SeatModel, from_graph, make_item
from collabsim.errors import ProtocolError
from collabsim.models.chat.langchain_model import as_reply
from collabsim.request import Message
from collabsim.seeds import call_seed
from collabsim.testing import sample_items

ITEM = make_item("What is 2 + 3?", "5")


def one_node(node) -> StateGraph:
    graph = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    return graph


def run_node(node, seats, **how):
    episode = from_graph(one_node(node), seats, **how).run(ITEM)
    assert episode.error is None, episode.error
    return episode


@pytest.mark.parametrize("sync", [False, True], ids=["async node", "sync node in a thread"])
def test_a_call_goes_through_the_run_with_its_seed_and_is_recorded(sync):
    model = Scripted("a", "Answer: 5")
    episode = from_graph(chain("a", sync=sync), {"a": model}).run(ITEM, run_seed=7)
    (call,) = episode.calls
    assert (call.seat, call.node, call.draw, call.paired, bool(call.key)) == ("a", "ask-a", 0, True, True)
    assert model.asked[0].seed == call_seed(7, ITEM.id, "a", 0)
    assert model.asked[0].messages == ITEM.view.messages


def test_calls_of_equal_content_are_samples_of_their_own_and_others_are_draw_zero():
    seat = SeatModel("a")

    async def node(state):
        for question in ("x", "y", "x", "x"):
            await seat.ainvoke(question)

    assert [(call.draw) for call in run_node(node, {"a": Scripted("a", "ok")}).calls] == [0, 0, 1, 2]


def test_a_draw_may_be_named():
    async def node(state):
        await SeatModel("a").bind(draw=4).ainvoke("x")

    assert [call.draw for call in run_node(node, {"a": Scripted("a", "ok")}).calls] == [4]


def test_the_store_answers_what_was_asked_before():
    model = Scripted("a", "Answer: 5")
    system = from_graph(chain("a"), {"a": model})
    first, second = system.run(ITEM), system.run(ITEM)
    assert [call.reused for call in (*first.calls, *second.calls)] == [False, True]
    assert len(model.asked) == 1


def test_persona_sampling_and_what_is_bound_are_in_force():
    model = Scripted("a", "ok")
    seat = Seat("a", model, sampling=Sampling(temperature=0.3, max_tokens=9), system="Be brief.")

    async def node(state):
        await SeatModel("a").bind(temperature=0.0).ainvoke([SystemMessage("Now."), HumanMessage("x")], stop=["."])

    run_node(node, Pool(a=seat))
    (request,) = model.asked
    assert request.messages == (Message("system", "Be brief."), Message("system", "Now."), Message("user", "x"))
    assert (request.sampling.temperature, request.sampling.max_tokens, request.sampling.stop) == (0.0, 9, (".",))


def test_an_unknown_keyword_is_refused_and_not_dropped():
    async def node(state):
        await SeatModel("a").bind(response_format="json").ainvoke("x")

    with pytest.raises(Exception, match=r"got \['response_format'\]; leave it out"):
        from_graph(one_node(node), {"a": Scripted("a", "ok")}).run(ITEM)


def test_outside_of_any_run_the_default_model_speaks():
    seat = SeatModel("a", GenericFakeChatModel(messages=iter([AIMessage("hello"), AIMessage("again")])))
    assert seat.invoke("x").text == "hello"
    assert asyncio.run(seat.ainvoke("x")).text == "again"


def test_outside_of_any_run_a_seat_without_default_says_what_to_do():
    with pytest.raises(ProtocolError, match="asked outside of any run"):
        SeatModel("a").invoke("x")


def test_a_thread_that_does_not_carry_the_run_is_found():
    seat, found = SeatModel("a"), []

    def node(state):
        def ask():
            try:
                seat.invoke("x")
            except ProtocolError as error:
                found.append(str(error))

        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()

    run_node(node, pool("a"))
    assert "copy_context" in found[0]


def test_an_application_s_own_except_does_not_take_an_absent_seat_for_a_failure():
    seat = SeatModel("a")

    async def node(state):
        try:
            return {"messages": [await seat.ainvoke("x")]}
        except Exception:
            return said("Answer: 5")

    def sync_node(state):
        try:
            return {"messages": [seat.with_retry().with_fallbacks([SeatModel("b")]).invoke("x")]}
        except Exception:
            return said("Answer: 5")

    for each in (node, sync_node):
        episode = from_graph(one_node(each), pool("a", "b"), players=["a"]).run(ITEM, [])
        assert (episode.error, episode.final, episode.calls) == (None, (), ())


@pytest.mark.parametrize(
    "rule", ["Answer: 5", AIMessage("Answer: 5"), lambda messages: f"Answer: {4 + len(messages)}"], ids=type
)
def test_what_stands_in_for_a_seat_is_said_in_its_place_without_a_call(rule):
    system = from_graph(one_node(ask_node("a")), pool("a"), players=["a"], absent={"a": rule})
    episode = system.run(ITEM, [])
    assert (episode.outcome, episode.calls) == (1.0, ())


def test_a_node_abstains_when_a_graph_or_a_tool_that_it_calls_asks_an_absent_seat():
    inner = one_node(ask_node("a")).compile()

    async def calls_a_graph(state):
        return {"messages": (await inner.ainvoke({"messages": state["messages"]}))["messages"][-1:]}

    system = from_graph(one_node(calls_a_graph), pool("a"), players=["a"])
    assert [call.seat for call in system.run(ITEM).calls] == ["a"]
    off = system.run(ITEM, [])
    assert (off.error, off.final, off.calls) == (None, (), ())

    @tool
    def consult(question: str) -> str:
        """Ask somebody."""
        return SeatModel("a").invoke(question).text

    call = {"name": "consult", "args": {"question": "?"}, "id": "1", "type": "tool_call"}
    graph = StateGraph(MessagesState)
    graph.add_node("asker", lambda state: {"messages": [AIMessage("", tool_calls=[call])]})
    graph.add_node("tools", ToolNode([consult]))
    graph.add_edge(START, "asker")
    graph.add_edge("asker", "tools")
    last = {"players": ["a"], "output": lambda state: state["messages"][-1].text}
    system = from_graph(graph, {"a": Scripted("a", "Answer: 5")}, **last)
    assert system.run(ITEM).final[0].text == "Answer: 5"
    assert system.run(ITEM, []).final[0].text == "This tool is not available."


def test_structured_output_is_read_from_a_call_of_its_tool():
    class Verdict(BaseModel):
        """A judgement."""

        right: bool

    found = []

    async def node(state):
        found.append(await SeatModel("a").with_structured_output(Verdict).ainvoke("Is it right?"))

    model = Scripted("a", '<tool_call>{"name": "Verdict", "arguments": {"right": true}}</tool_call>')
    run_node(node, {"a": model})
    assert found == [Verdict(right=True)]
    assert "Call one of them now." in model.asked[0].messages[0].content


async def test_concurrent_runs_do_not_see_each_other():
    graph = chain("a", "b", sync=True)
    items = sample_items(6)
    system = from_graph(graph, pool("a", "b"), players=["a", "ask-b"])
    system.study(items)
    plan = [(item, present) for item in items for present in ([], ["a"], ["ask-b"], ["a", "ask-b"])]
    together = await asyncio.gather(*(system.arun(item, present) for item, present in plan))
    for (item, present), episode in zip(plan, together, strict=True):
        alone = await system.arun(item, present)
        assert episode.final == alone.final
        expected = (["a"] if "a" in present else []) + (["b"] if "ask-b" in present else [])
        assert [call.seat for call in episode.calls] == expected


class Slow(BaseChatModel):
    """A synchronous model, as many are; LangChain runs it in a thread."""

    @property
    def _llm_type(self):
        return "slow"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        threading.Event().wait(0.01)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(f"Answer: {len(messages[0].text)}"))])


def test_synchronous_nodes_that_wait_do_not_keep_synchronous_models_from_answering():
    from collabsim.loop import run_sync

    system = from_graph(chain("a", sync=True), {"a": Slow()})
    items = [make_item(f"What is {k} + {k}?", str(2 * k)) for k in range(60)]

    async def all_at_once():
        runs = (system.arun(item) for item in items)
        return await asyncio.wait_for(asyncio.gather(*runs), 60)

    assert [episode.error for episode in run_sync(all_at_once())] == [None] * 60


def test_a_store_on_disk_serves_another_process_s_run(tmp_path):
    model = Scripted("a", "Answer: 5")
    for session in range(2):
        with GenerationStore(tmp_path / "g.sqlite") as store:
            from_graph(chain("a"), {"a": model}, store=store).run(ITEM)
        assert len(model.asked) == 1, session


def test_the_message_says_how_the_reply_ended():
    ended = []

    async def node(state):
        message = await SeatModel("a").bind(max_tokens=2).ainvoke(state["messages"])
        ended.append(as_reply(message).finish)
        return {"messages": [message]}

    seats = pool("a")
    assert run_node(node, seats).final[0].finish == "length"
    assert ended == ["length"]
