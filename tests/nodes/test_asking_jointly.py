"""The door to ensembles: who writes, with which settings, and what is recorded."""

import numpy as np
import pytest

from collabsim import Pool, Sampling, Seat, System, make_item
from collabsim.errors import ConfigError, ProtocolError
from collabsim.models.simulation.simulated import SimulatedModel
from collabsim.nodes.asking_jointly import ask_joint
from collabsim.nodes.state import State
from collabsim.nodes.voting import share

ITEMS = [make_item(f"What is {k} + {2 * k + 1}?", str(3 * k + 1)) for k in range(2, 8)]


class Forbid:
    """A rule under which no token is possible."""

    recipe = "forbid"

    def __call__(self, rows):
        return np.full(rows.shape[-1], -np.inf)


class First:
    """The first member decides."""

    def __init__(self, version=0):
        self.recipe = ["first", version]

    def __call__(self, rows):
        return rows[0]


def system(combine, pool, order):
    def together(seats):
        from langgraph.graph import END, START, StateGraph

        async def write(state: State, runtime):
            reply = await ask_joint(runtime, order, runtime.context.item.messages, combine)
            return {"final": share([reply]) if reply else ()}

        graph = StateGraph(State)
        graph.add_node("write", write)
        graph.add_edge(START, "write")
        graph.add_edge("write", END)
        return graph

    made = System(together, pool)
    made.study(ITEMS)
    return made


def pool(**sampling):
    return Pool(
        {
            name: Seat(name, SimulatedModel(name=name, skill=skill), sampling=Sampling(temperature=0, **sampling))
            for name, skill in (("weak", -9.0), ("good", 9.0))
        }
    )


async def test_the_rule_reads_members_in_the_order_of_the_seats():
    for order, outcome in ((["good", "weak"], 1.0), (["weak", "good"], 0.0)):
        assert (await system(First(), pool(), order).arun(ITEMS[0])).outcome == outcome


async def test_a_single_present_member_answers_as_it_would_alone():
    made = system(Forbid(), pool(), ["weak", "good"])
    episode = await made.arun(ITEMS[0], ["good"])
    assert (episode.final, [call.seat for call in episode.calls]) == (
        (await made.alone_on(ITEMS[0], "good")).final,
        ["good"],
    )


async def test_nobody_present_is_no_call():
    episode = await system(Forbid(), pool(), ["weak", "good"]).arun(ITEMS[0], [])
    assert (episode.outcome, episode.calls) == (0.0, ())


async def test_members_with_other_sampling_are_refused_by_name():
    members = pool()
    other = Seat("weak", members["weak"].model, sampling=Sampling(temperature=0.5, max_tokens=9))
    with pytest.raises(ConfigError, match=r"'good' and 'weak'.*temperature, max_tokens"):
        await system(First(), Pool({**members, "weak": other}), ["good", "weak"]).arun(ITEMS[0])


async def test_a_rule_that_leaves_no_token_fails_the_run_and_is_no_answer():
    episode = await system(Forbid(), pool(), ["weak", "good"]).arun(ITEMS[0])
    assert (episode.outcome, episode.error.kind) == (None, "CallError")


async def test_models_that_show_no_distribution_are_refused():
    from scripted import Scripted

    with pytest.raises(ProtocolError, match="next-token distribution"):
        await system(First(), Pool(good=Scripted("a", "5"), weak=Scripted("b", "4")), ["good", "weak"]).arun(ITEMS[0])


async def test_other_rules_are_other_generations():
    members = pool()
    keys = set()
    for version in (0, 1, 1):
        episode = await system(First(version), members, ["good", "weak"]).arun(ITEMS[0])
        keys |= {call.key for call in episode.calls}
    assert len(keys) == 2


async def test_replicas_and_run_seeds_are_other_samples():
    members = Pool({name: SimulatedModel(name=name) for name in ("weak", "good")})
    made = system(First(), members, ["good", "weak"])
    keys = {(await made.arun(ITEMS[0], **how)).calls[0].key for how in ({}, {"replica": 1}, {"run_seed": 3})}
    assert len(keys) == 3
