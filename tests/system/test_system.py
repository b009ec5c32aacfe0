"""What one run of a system is: presence, roles, order, failures, floor, swapping."""

import asyncio
from dataclasses import FrozenInstanceError, replace

import pytest
from langgraph.graph import END, START, StateGraph
from scripted import Scripted

from collabsim import ABSENT, Ask, Pool, Sampling, Seat, State, System, ask, context_of, make_item, protocol
from collabsim.context import Limits, Recorder
from collabsim.episode import Reply
from collabsim.errors import CallError, ConfigError, ContextOverflowError, ProtocolError
from collabsim.request import Message, Request
from collabsim.seeds import call_seed
from collabsim.system.fitted import Fitted

ITEM = make_item("What is 2 + 3?", "5")
CHOICE = make_item("Which is a colour?", "A", choices={"A": "red", "B": "dog", "C": "cat", "D": "car"})


def one_node(node):
    """A protocol whose graph is this node alone."""

    @protocol
    def single(seats):
        graph = StateGraph(State)
        graph.add_node("node", node)
        graph.add_edge(START, "node")
        graph.add_edge("node", END)
        return graph

    return single


def vote_of(**answers):
    """A majority vote among models that always say these answers."""
    return System("majority_vote", Pool({name: Scripted(name, f"Answer: {said}") for name, said in answers.items()}))


async def test_only_present_seats_are_asked():
    system = vote_of(a=5, b=5, c=4)
    episode = await system.arun(ITEM, ["a", "c"])
    assert {call.seat for call in episode.calls} == {"a", "c"}
    assert system.pool["b"].model.asked == []


async def test_the_empty_coalition_is_worth_the_floor_without_a_call():
    episode = await vote_of(a=5).arun(replace(CHOICE, floor=CHOICE.chance), [])
    assert (episode.outcome, episode.verdict, episode.calls) == (0.25, None, ())


async def test_a_run_in_which_nobody_has_an_answer_scores_zero_and_not_the_floor():
    system = System("majority_vote", {"a": Scripted("a", "no idea"), "b": Scripted("b", "none")})
    episode = await system.arun(replace(CHOICE, floor=CHOICE.chance))
    assert (episode.outcome, episode.verdict) == (0.0, "unparsed")


async def test_an_unknown_seat_is_refused_by_name():
    with pytest.raises(ConfigError, match="no seat 'alpha'"):
        await vote_of(alfa=5).arun(ITEM, ["alpha"])


async def test_one_graph_serves_all_pools_with_the_same_seats_and_options():
    first, second = vote_of(a=1, b=2), vote_of(a=3, b=4)
    assert first.graph is second.graph
    assert first.graph is first.replace("a", Scripted("other", "7")).graph


async def test_swapping_a_model_leaves_the_old_system_as_it_was():
    before = vote_of(a=4)
    after = before.replace("a", Scripted("right", "Answer: 5"))
    assert [(await system.arun(ITEM)).outcome for system in (before, after)] == [0.0, 1.0]


async def test_a_failed_call_fails_its_run_and_says_where():
    system = System("majority_vote", {"a": Scripted("a", CallError("server is down")), "b": Scripted("b", "Answer: 5")})
    episode = await system.arun(ITEM)
    assert episode.failed
    assert (episode.error.kind, episode.error.message) == ("CallError", "server is down")
    assert "a-0" in episode.error.where


async def test_a_failed_call_is_never_an_absence():
    system = System("majority_vote", {"a": Scripted("a", CallError("x")), "b": Scripted("b", "Answer: 5")})
    assert (await system.arun(ITEM)).outcome is None
    assert (await system.arun(ITEM, ["b"])).outcome == 1.0


async def test_a_bug_in_a_node_fails_the_run_and_not_the_process():
    async def burst(state):
        raise KeyError("missing")

    episode = await System(one_node(burst), {"a": Scripted("a", "5")}).arun(ITEM)
    assert episode.error.kind == "KeyError"


async def test_a_node_that_asks_a_stranger_ends_the_sweep_and_not_just_the_run():
    strange = one_node(Ask("x", "stranger"))
    with pytest.raises(ProtocolError, match=r"neither a seat .* nor a helper"):
        await System(strange, {"a": Scripted("a", "5")}).arun(ITEM)


@pytest.mark.parametrize("final", ["5", (("5",),), (("5", 0.4),), ((5, 1.0),), (("5", 1.5), ("4", -0.5))])
async def test_a_final_output_that_is_not_weighted_texts_is_refused(final):
    async def write(state):
        return {"final": final}

    odd = one_node(write)
    with pytest.raises(ProtocolError, match="weights that sum to 1"):
        await System(odd, {"a": Scripted("a", "5")}).arun(ITEM)


def test_a_build_function_must_return_a_graph():
    with pytest.raises(ProtocolError, match="must return an uncompiled StateGraph, got str"):
        System(lambda seats: "graph", {"a": Scripted("a", "5")}).run(ITEM)


async def test_a_tie_is_worth_its_expected_score():
    episode = await vote_of(a=5, b=4, c=3, d=5, e=4).arun(ITEM)
    assert episode.outcome == 0.5
    assert episode.verdict == "partial"


async def test_the_messages_of_an_own_answer_are_the_seats_persona_and_the_tasks_prompt():
    model = Scripted("a", "Answer: 5")
    seat = Seat("a", model, system="Be brief.", examples=(("1 + 1?", "Answer: 2"),))
    await System("debate", {"a": seat, "b": Scripted("b", "Answer: 5")}).arun(ITEM)
    opening = (
        Message("system", "Be brief."),
        Message("user", "1 + 1?"),
        Message("assistant", "Answer: 2"),
        *ITEM.view.messages,
    )
    assert model.asked[0].messages == opening


async def test_the_seed_of_a_call_depends_on_run_item_seat_and_draw_alone():
    system = vote_of(a=5, b=5)
    await system.arun(ITEM, ["a"], run_seed=7)
    assert system.pool["a"].model.asked[0].seed == call_seed(7, ITEM.id, "a", 0)
    assert call_seed(7, ITEM.id, "a", 0) != call_seed(8, ITEM.id, "a", 0) != call_seed(7, ITEM.id, "a", 1)
    assert call_seed(7, ITEM.id, "a", 0, replica=1) != call_seed(7, ITEM.id, "a", 0)


async def test_two_seats_with_one_model_sample_independently():
    model = Scripted("twin", "Answer: 5")
    await System("majority_vote", {"a": model, "b": model}).arun(ITEM)
    assert len({request.seed for request in model.asked}) == 2


async def test_another_replica_draws_anew():
    system = vote_of(a=5)
    await system.arun(ITEM)
    await system.arun(ITEM, replica=1)
    assert len(system.pool["a"].model.asked) == 2


async def test_an_overflow_fails_the_run_unless_told_to_count_as_no_answer():
    pool = {"a": Scripted("a", ContextOverflowError("too long")), "b": Scripted("b", "Answer: 5")}
    assert (await System("majority_vote", pool).arun(ITEM)).error.kind == "ContextOverflowError"
    lenient = System("majority_vote", pool, limits=Limits(on_overflow="no_answer"))
    episode = await lenient.arun(ITEM)
    assert episode.outcome == 1.0
    assert "overflow" in {call.finish for call in episode.calls}


async def test_a_cut_reply_as_final_output_is_scored_as_a_cut_one():
    cut = Scripted("a", Reply("First 2 and 3, that makes 5", finish="length"))
    episode = await System("majority_vote", {"a": cut}).arun(ITEM)
    assert (episode.outcome, episode.verdict) == (0.0, "unparsed")


async def test_alone_floor_makes_a_single_seat_worth_nothing_without_a_call():
    system = replace(vote_of(a=5, b=5), alone="floor")
    episode = await system.arun(ITEM, ["a"])
    assert (episode.outcome, episode.calls) == (0.0, ())
    assert (await system.alone_on(ITEM, "a")).outcome == 1.0


async def test_absent_seats_are_filled_by_a_helper_when_told_so():
    helpers = Pool({"stand_in": Scripted("stand_in", "Answer: 5")})
    system = replace(vote_of(a=4, b=4), helpers=helpers, absent="replace:stand_in")
    assert [(await system.arun(ITEM, present)).outcome for present in ([], ["a"], ["a", "b"])] == [1.0, 0.5, 0.0]


# ---- roles ---------------------------------------------------------------------------------------------------------


def judged(roles=None, helpers=None, fitted=None):
    pool = {name: Scripted(name, f"Answer: {said}") for name, said in {"a": 4, "b": 5, "c": 6}.items()}
    return System(
        "debate",
        pool,
        options={"rounds": 1, "final": "judge"},
        roles=roles or {},
        helpers=helpers or Pool(),
        fitted=fitted or Fitted(),
    )


def judge_of(episode):
    return next(call.seat for call in episode.calls if call.node == "judge")


async def test_a_role_given_to_a_seat_moves_to_the_next_when_that_seat_is_absent():
    system = judged(roles={"judge": ["b", "c"]})
    assert judge_of(await system.arun(ITEM)) == "b"
    assert judge_of(await system.arun(ITEM, ["a", "c"])) == "c"


async def test_a_role_given_to_a_helper_stays_there_for_every_coalition():
    system = judged(roles={"judge": "h"}, helpers=Pool({"h": Scripted("h", "Answer: 5")}))
    assert {judge_of(await system.arun(ITEM, present)) for present in (["a", "b"], ["b", "c"], None)} == {"h"}


async def test_a_role_without_a_wish_goes_to_the_best_present_seat_by_dev_score():
    system = judged(fitted=Fitted(dev_scores={"a": 0.2, "b": 0.9, "c": 0.5}))
    assert judge_of(await system.arun(ITEM)) == "b"
    assert judge_of(await system.arun(ITEM, ["a", "c"])) == "c"


async def test_without_dev_scores_no_seat_holds_a_role_by_its_name():
    items = [make_item(f"What is {k} + 1?", str(k + 1)) for k in range(30)]
    system = judged()
    assert {judge_of(await system.arun(item)) for item in items} == {"a", "b", "c"}


async def test_seats_with_one_model_share_a_rank_and_take_turns_in_a_role():
    twin = Scripted("twin", "Answer: 5")
    system = System(
        "debate",
        {"a": twin, "b": twin, "c": Scripted("c", "Answer: 4")},
        options={"rounds": 1, "final": "judge"},
        fitted=Fitted(dev_scores={"a": 0.9, "b": 0.5, "c": 0.6}),
    )
    items = [make_item(f"What is {k} + 1?", str(k + 1)) for k in range(30)]
    assert {judge_of(await system.arun(item)) for item in items} == {"a", "b"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"roles": {"jugde": "a"}}, "no role 'jugde' \\(did you mean 'judge'\\?\\)"),
        ({"roles": {"judge": "d"}}, "no seat 'd'"),
        ({"order": ["a", "b"]}, "must name every seat once"),
        ({"alone": "nothing"}, "'answers' or 'floor'"),
        ({"absent": "replace:x"}, "replace:HELPER"),
        ({"helpers": Pool({"a": Scripted("h", "5")})}, "both seats and helpers"),
        ({"options": {"round": 2}}, "no option 'round' \\(did you mean 'rounds'\\?\\)"),
        ({"options": {"rounds": 0}}, "greater than or equal to 1"),
    ],
)
def test_a_system_that_cannot_be_meant_is_refused(change, message):
    with pytest.raises(ConfigError, match=message):
        replace(judged(), **change)


# ---- context -------------------------------------------------------------------------------------------------------


async def test_nodes_see_the_item_without_its_gold_and_cannot_change_the_run():
    seen = []

    async def look(state, runtime):
        seen.append(context_of(runtime))
        return {"final": (("5", 1.0),)}

    looking = one_node(look)
    await System(looking, {"a": Scripted("a", "5")}).arun(ITEM)
    (run,) = seen
    assert run.item == ITEM.view
    assert not hasattr(run.item, "gold")
    assert bool(run)
    with pytest.raises(FrozenInstanceError):
        run.present = frozenset()


async def test_asking_an_absent_seat_gives_absent_and_makes_no_call():
    said = []

    async def both(state, runtime):
        said.extend([await ask(runtime, "a", "2 + 3?"), await ask(runtime, "b", "2 + 3?")])
        return {"final": (("5", 1.0),)}

    asking = one_node(both)
    system = System(asking, {"a": Scripted("a", "Answer: 5"), "b": Scripted("b", "Answer: 5")})
    episode = await system.arun(ITEM, ["a"])
    assert said[0].text == "Answer: 5"
    assert said[1] is ABSENT
    assert not ABSENT
    assert [call.node for call in episode.calls] == ["node"]


async def test_sampling_can_be_overridden_for_one_call_and_unknown_settings_are_refused():
    async def once(state, runtime):
        await ask(runtime, "a", "2 + 3?", temperature=0.0)
        return {"final": (("5", 1.0),)}

    async def wrong(state, runtime):
        await ask(runtime, "a", "2 + 3?", temprature=0.0)

    model = Scripted("a", "Answer: 5")
    await System(one_node(once), {"a": Seat("a", model, sampling=Sampling(max_tokens=9))}).arun(ITEM)
    assert (model.asked[0].sampling.temperature, model.asked[0].sampling.max_tokens) == (0.0, 9)
    with pytest.raises(ConfigError, match="temprature"):
        await System(one_node(wrong), {"a": model}).arun(ITEM)


async def test_a_recorder_sees_every_request_and_reply_of_a_run():
    seen: list[tuple[Request, Reply]] = []

    class Watching(Recorder):
        def record(self, call, request, reply):
            super().record(call, request, reply)
            seen.append((request, reply))

    await vote_of(a=5, b=4).arun(ITEM, recorder=Watching())
    assert sorted(reply.text for _, reply in seen) == ["Answer: 4", "Answer: 5"]


def test_a_system_runs_from_plain_code():
    assert vote_of(a=5).run(ITEM).outcome == 1.0


async def test_a_system_runs_from_code_that_already_has_a_loop():
    system = vote_of(a=5)
    assert (await asyncio.to_thread(system.run, ITEM)).outcome == 1.0
    assert system.run(ITEM).outcome == 1.0  # as in a notebook cell


async def test_concurrent_runs_of_other_coalitions_do_not_see_each_other():
    pool = {name: Scripted(name, "Answer: 5") for name in "abc"}
    system = System("debate", pool)
    coalitions = [["a"], ["b", "c"], ["a", "c"], ["a", "b", "c"]] * 5
    episodes = await asyncio.gather(*(system.arun(ITEM, present) for present in coalitions))
    assert [set(episode.present) for episode in episodes] == [set(present) for present in coalitions]
    assert all({call.seat for call in episode.calls} == set(episode.present) for episode in episodes)
