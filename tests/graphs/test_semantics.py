"""What holds for every routing and text protocol alike: counts of calls, null players, lone seats, failures."""

from itertools import combinations

import pytest
from scripted import Scripted, last_words

from collabsim import Pool, System, make_item
from collabsim.coalitions.forecast import calls_per_run
from collabsim.episode import Reply
from collabsim.errors import CallError, ConfigError
from collabsim.models.simulation.simulated import SimulatedModel
from collabsim.system.fitted import Fitted
from collabsim.system.fitting import afit
from collabsim.testing import sample_dev_items, sample_items

ITEM = make_item("What is 2 + 3?", "5")
SEATS = "abcd"
PROTOCOLS = {
    "blackboard": {"rounds": 3, "quorum": 2},
    "cascade": {"threshold": 0.5},
    "feedback": {"critics": 2, "rounds": 2},
    "graph_router": {},
    "knowledge_cards": {},
    "rank_and_fuse": {"top_k": 2},
    "self_consistent_mux": {"samples": 3},
    "structured": {"structure": "chain"},
    "switch_generation": {"segment": 6, "turns": 2},
    "trained_router": {},
}
ROLES = {"knowledge_cards": ["answerer"], "rank_and_fuse": ["ranker", "fuser"], "feedback": ["judge"]}


def coalitions(seats, smallest=0):
    return [set(chosen) for size in range(smallest, len(seats) + 1) for chosen in combinations(seats, size)]


def busy(name):
    """A model that always has an answer of its own, is never sure, and never comes to an end."""

    def say(request):
        words = last_words(request)
        if "How likely" in words:
            return "10"
        if "number" in words and "Answer 2:" in words:
            return "1"
        finish = "length" if request.sampling.max_tokens < 10 else "stop"
        return Reply(f"It seems so.\nAnswer: {10 * ord(name) + request.draw} ", finish)

    return Scripted(name, say)


async def fitted(system):
    dev = sample_dev_items()
    system.study(dev)
    from dataclasses import replace

    return replace(system, fitted=await afit(system, dev))


CALLS = [
    *PROTOCOLS.items(),
    ("cascade", {"threshold": 1.0, "costs": {"a": 1, "b": 2, "c": 3, "d": 4}}),
    ("feedback", {"critics": 3, "final": "judge"}),
    ("rank_and_fuse", {"ranking": "listwise", "top_k": 1}),
    *(("structured", {"structure": shape}) for shape in ("tree", "star", "ring", "complete")),
    ("structured", {"structure": "ring", "rounds": 4}),
    ("structured", {"structure": "star", "rounds": 4}),
]


@pytest.mark.parametrize(("name", "options"), CALLS)
async def test_the_calls_made_are_those_declared_for_every_coalition(name, options):
    helpers = Pool({"helper": busy("h")})
    roles = dict.fromkeys(ROLES.get(name, ()), "helper")
    system = System(name, {seat: busy(seat) for seat in SEATS}, options=options, helpers=helpers, roles=roles)
    if "dev" in system.protocol.needs:
        system = await fitted(system)
    declared = calls_per_run(system)
    for present in coalitions(SEATS):
        episode = await system.arun(ITEM, present)
        assert episode.error is None
        assert len(episode.calls) == declared(frozenset(present)), present


async def test_an_answerer_that_is_a_seat_saves_its_own_card():
    system = System("knowledge_cards", {seat: busy(seat) for seat in SEATS})
    assert [len((await system.arun(ITEM, list(present))).calls) for present in ("a", "ab", "abcd")] == [1, 2, 4]


@pytest.mark.parametrize("name", PROTOCOLS)
async def test_a_lone_seat_is_asked_the_task_itself_and_nothing_else(name):
    models = {seat: busy(seat) for seat in SEATS}
    system = System(name, models, options=PROTOCOLS[name])
    if "dev" in system.protocol.needs:
        system = await fitted(system)
    models["b"].asked.clear()
    await system.arun(ITEM, ["b"])
    (request,) = models["b"].asked
    assert request.messages == ITEM.view.messages
    assert request.sampling == system.pool["b"].sampling
    assert request.draw == 0


# A protocol in which two members do more than one alone, even if one of the two says nothing.
MORE_THAN_ALONE = {"self_consistent_mux", "switch_generation"}


WITHOUT_WORDS = ["", "<think>\nhm", Reply("", "content_filter")]
MUTE_CASES = [
    *PROTOCOLS.items(),
    ("debate", {"rounds": 3}),
    ("debate", {"rounds": 3, "self_refine": True}),
    ("debate", {"final": "judge"}),
    ("feedback", {"final": "judge"}),
    ("majority_vote", {}),
    ("mixture_of_agents", {}),
    ("mixture_of_agents", {"layers": 2}),
    ("prompt_router", {}),
    ("trained_aggregator", {}),
    ("trained_aggregator", {"aggregator": "c"}),
]


async def with_a_mute(name, options, silence, items, **more):
    models = {seat: SimulatedModel(name=seat, skill=k - 0.5, conformity=0.5) for k, seat in enumerate("abc")}
    system = System(name, {**models, "mute": Scripted("mute", silence)}, options=options, **more)
    system.study(items)
    return await fitted(system)


@pytest.mark.parametrize("silence", WITHOUT_WORDS)
@pytest.mark.parametrize(("name", "options"), MUTE_CASES)
async def test_a_member_that_never_says_anything_is_a_null_player(name, options, silence):
    items = sample_items(4)
    system = await with_a_mute(name, options, silence, items)
    for present in coalitions("abc", smallest=2 if name in MORE_THAN_ALONE else 0):
        for item in items:
            without, with_mute = await system.arun(item, present), await system.arun(item, present | {"mute"})
            assert without.error is with_mute.error is None
            assert with_mute.outcome == without.outcome, (present, item.question)


HELD_BY_HELPERS = {
    "debate": ("judge", {"final": "judge"}),
    "feedback": ("judge", {"final": "judge"}),
    "mixture_of_agents": ("aggregator", {"layers": 2}),
    "prompt_router": ("router", {}),
    "trained_aggregator": ("aggregator", {}),
}


@pytest.mark.parametrize("name", HELD_BY_HELPERS)
async def test_a_mute_member_is_a_null_player_whatever_a_helper_makes_of_the_others(name):
    role, options = HELD_BY_HELPERS[name]
    helper = Scripted("helper", lambda request: "1" if "number only" in last_words(request) else "Answer: 7")
    items = sample_items(3)
    helpers = {"helpers": Pool({"helper": helper}), "roles": {role: "helper"}}
    system = await with_a_mute(name, options, "", items, **helpers)
    for present in coalitions("abc", smallest=1):
        for item in items:
            without, with_mute = await system.arun(item, present), await system.arun(item, present | {"mute"})
            assert with_mute.final == without.final, (present, item.question)


ALL_ARE_ASKED = sorted(set(PROTOCOLS) - {"graph_router", "trained_router"})


@pytest.mark.parametrize("name", ALL_ARE_ASKED)
async def test_a_failed_call_fails_the_run_and_is_never_shown(name):
    models = {seat: busy(seat) for seat in "ac"} | {"b": Scripted("b", lambda _: CallError("the server is gone"))}
    episode = await System(name, models, options=PROTOCOLS[name]).arun(ITEM)
    assert episode.outcome is None
    assert episode.error.kind == "CallError"
    assert not any("server is gone" in str(request.messages) for seat in "ac" for request in models[seat].asked)


@pytest.mark.parametrize("name", ["graph_router", "trained_router"])
async def test_a_router_that_was_not_fitted_refuses_to_run(name):
    system = System(name, {"a": busy("a"), "b": busy("b")})
    with pytest.raises(ConfigError, match="fitted on dev items"):
        await system.arun(ITEM)
    assert system.fitted == Fitted()
