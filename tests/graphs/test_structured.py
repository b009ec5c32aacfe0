"""Who hears whom, in which order, and whose answer counts at the end."""

import networkx as nx
import pytest
from collabsim.graphs.structured import contracted, hearing
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import Scripted, last_words

from collabsim import System, make_item
from collabsim.errors import ConfigError
from collabsim.models.simulation.simulated import SimulatedModel
from collabsim.testing import sample_items

ITEM = make_item("What is 2 + 3?", "5")
SEATS = "abcd"


def member(number):
    """Answers 10 * number + round."""
    return lambda request: f"Answer: {10 * number + request.draw}"


def structured(structure, seats=SEATS, order=SEATS, **options):
    pool = {name: Scripted(name, member(k)) for k, name in enumerate(seats, 1)}
    return System("structured", pool, options={"structure": structure, **options}, order=list(order))


def heard(system, seat, draw=1):
    """The answers that a seat was shown in a round."""
    for request in system.pool[seat].model.asked:
        if request.draw == draw:
            return [int(word) for word in last_words(request).split() if word.isdigit() and int(word) > 9]
    return None


@pytest.mark.parametrize(
    ("structure", "expected", "final"),
    [
        ("chain", {"a": [21], "b": [31], "c": [40], "d": None}, ["11"]),
        ("star", {"a": [20, 30, 40], "b": None, "c": None, "d": None}, ["11"]),
        ("tree", {"a": [21, 30], "b": [40], "c": None, "d": None}, ["11"]),
        ("ring", {"a": [20], "b": [30], "c": [40], "d": [10]}, ["11", "21", "31", "41"]),
        ("complete", {"a": [20, 30, 40], "d": [10, 20, 30]}, ["11", "21", "31", "41"]),
    ],
)
async def test_each_shape_passes_answers_along_and_ends_where_nobody_listens(structure, expected, final):
    system = structured(structure)
    episode = await system.arun(ITEM)
    assert {seat: heard(system, seat) for seat in expected} == expected
    assert sorted(output.text.removeprefix("Answer: ") for output in episode.final) == final


@pytest.mark.parametrize(
    ("structure", "present", "expected"),
    [
        ("chain", "acd", {"a": [31], "c": [40], "d": None}),
        ("star", "bcd", {"b": [30, 40], "c": None}),
        ("ring", "abd", {"a": [20], "b": [40], "d": [10]}),
        ({"a": ["b"], "b": ["c", "d"]}, "acd", {"a": [30, 40], "c": None, "d": None}),
        ({"a": ["b"], "b": ["c", "d"]}, "bd", {"b": [40], "d": None}),
        ({"a": ["b"], "b": ["a"]}, "ac", {"a": None, "c": None}),
    ],
)
async def test_an_absent_seat_is_contracted(structure, present, expected):
    system = structured(structure)
    await system.arun(ITEM, list(present))
    assert {seat: heard(system, seat) for seat in expected} == expected


async def test_a_seat_without_an_answer_is_contracted_too():
    pool = {name: Scripted(name, member(k)) for k, name in enumerate("abc", 1)}
    pool["b"] = Scripted("b", "no idea")
    system = System("structured", pool, options={"structure": "chain"}, order=list("abc"))
    await system.arun(ITEM)
    assert heard(system, "a") == [30]
    assert [request.draw for request in system.pool["b"].model.asked] == [0]


async def test_in_a_cycle_a_round_hears_the_round_before():
    system = structured("ring", rounds=3)
    await system.arun(ITEM)
    assert [heard(system, "a", draw) for draw in (1, 2)] == [[20], [21]]


async def test_more_rounds_change_nothing_where_no_cycle_brings_news():
    system = structured("chain", rounds=5)
    assert len((await system.arun(ITEM)).calls) == 7


async def test_behind_a_cycle_every_round_of_it_is_heard_in_order():
    system = structured({"a": ["b"], "b": ["a"], "c": ["a", "d"], "d": ["a"]}, rounds=3)
    await system.arun(ITEM)
    assert heard(system, "c", 1) == [11, 41]
    assert heard(system, "c", 2) == [12, 42]
    assert heard(system, "b", 2) == [11]


async def test_a_matrix_says_who_hears_whom_by_place():
    system = structured([[0, 0, 1], [1, 0, 0], [0, 0, 0]], seats="abc", order="bca")
    await system.arun(ITEM)
    assert {seat: heard(system, seat) for seat in "abc"} == {"b": [10], "c": [21], "a": None}


async def test_places_are_filled_by_a_fresh_order_for_every_item():
    items = [make_item(f"What is {k} + 1?", str(k + 1)) for k in range(40)]
    system = System("structured", {name: Scripted(name, member(k)) for k, name in enumerate("abc", 1)})
    ends = {(await system.arun(item)).final[0].text for item in items}
    assert ends == {"Answer: 11", "Answer: 21", "Answer: 31"}


async def test_a_seat_sees_its_own_last_answer_as_its_own():
    system = structured("chain")
    await system.arun(ITEM)
    request = next(request for request in system.pool["a"].model.asked if request.draw == 1)
    assert request.messages[:2] == (*ITEM.view.messages, ("assistant", "Answer: 10"))


@pytest.mark.parametrize("rounds", [1, 2, 3])
async def test_a_complete_graph_is_a_debate(rounds):
    items = sample_items(4)
    pool = {name: SimulatedModel(name=name, skill=k - 0.5, conformity=0.5) for k, name in enumerate("abc")}
    by_graph = System("structured", pool, options={"structure": "complete", "rounds": rounds})
    by_debate = System("debate", pool, options={"rounds": rounds})
    by_graph.study(items)
    for item in items:
        for present in ("ab", "bc", "abc"):
            one, other = await by_graph.arun(item, list(present)), await by_debate.arun(item, list(present))
            assert sorted(one.final) == sorted(other.final)
            assert sorted(call.key for call in one.calls) == sorted(call.key for call in other.calls)


@pytest.mark.parametrize(
    ("structure", "message"),
    [
        ([[0, 1], [0, 0]], "matrix of 4 rows"),
        ([[0, 1, 0, 0]] * 3, "matrix of 4 rows"),
        ({"a": ["x"]}, "expected names of seats"),
        ({"x": ["a"]}, "expected names of seats"),
    ],
)
def test_a_structure_that_does_not_fit_the_pool_is_refused(structure, message):
    with pytest.raises(ConfigError, match=message):
        _ = structured(structure).graph


def test_an_unknown_shape_is_refused():
    with pytest.raises(ConfigError, match="structure"):
        structured("mesh")


@given(
    size=st.integers(1, 6),
    edges=st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=14),
    kept=st.frozensets(st.integers(0, 5)),
)
@settings(deadline=None)
def test_contraction_keeps_who_can_reach_whom(size, edges, kept):
    graph = nx.DiGraph()
    graph.add_nodes_from(range(size))
    graph.add_edges_from((i, j) for i, j in edges if i != j and i < size and j < size)
    kept = frozenset(place for place in kept if place < size)
    rest = contracted(graph, kept)
    assert set(rest) == kept
    for one in kept:
        assert nx.descendants(rest, one) == nx.descendants(graph, one) & kept
    assert nx.number_of_selfloops(rest) == 0


@pytest.mark.parametrize("shape", ["chain", "tree", "star", "ring", "complete"])
@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_a_shape_whose_last_places_are_empty_is_the_smaller_shape(shape, size):
    rest = contracted(hearing(shape, 7), frozenset(range(size)))
    assert set(rest.edges) == set(hearing(shape, size).edges)
