"""How answers are put in order, and what the fuser reads."""

import re

import pytest
from collabsim.graphs.rank_and_fuse import named_order
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import Scripted, last_words

from collabsim import Pool, System, make_item

ITEM = make_item("What is 2 + 3?", "5")


def shown_numbers(request):
    return [int(number) for number in re.findall(r"> Answer: (\d+)", last_words(request))]


def prefers_larger(request):
    """A ranker that puts larger answers first, whatever their place."""
    shown = shown_numbers(request)
    order = sorted(range(len(shown)), key=lambda place: -shown[place])
    return ", ".join(str(place + 1) for place in (order if "numbers" in last_words(request) else order[:1]))


def ranked(members, ranker=prefers_larger, fuser="Answer: 5", **options):
    helpers = Pool({"ranker": Scripted("ranker", ranker), "fuser": Scripted("fuser", fuser)})
    pool = {name: Scripted(name, said) for name, said in members.items()}
    roles = {"ranker": "ranker", "fuser": "fuser"}
    return System("rank_and_fuse", pool, options=options, helpers=helpers, roles=roles)


MEMBERS = {"a": "Answer: 1", "b": "Answer: 4", "c": "Answer: 3", "d": "Answer: 2"}


@pytest.mark.parametrize("ranking", ["pairwise", "listwise"])
async def test_the_fuser_reads_the_best_answers_best_first(ranking):
    system = ranked(MEMBERS, ranking=ranking, top_k=3)
    assert (await system.arun(ITEM)).outcome == 1.0
    (request,) = system.helpers["fuser"].model.asked
    assert shown_numbers(request) == [4, 3, 2]


@pytest.mark.parametrize("ranking", ["pairwise", "listwise"])
async def test_with_one_answer_to_take_the_best_is_final_without_a_fuser(ranking):
    system = ranked({**MEMBERS, "e": "Answer: 5"}, ranking=ranking, top_k=1)
    assert (await system.arun(ITEM)).outcome == 1.0
    assert system.helpers["fuser"].model.asked == []


async def test_top_k_beyond_the_coalition_takes_all():
    system = ranked(MEMBERS, top_k=9)
    await system.arun(ITEM, ["a", "b"])
    assert shown_numbers(system.helpers["fuser"].model.asked[0]) == [4, 1]


async def test_a_single_answer_is_neither_ranked_nor_fused():
    system = ranked({"a": "Answer: 5", "b": "no idea"})
    assert (await system.arun(ITEM)).outcome == 1.0
    assert system.helpers["ranker"].model.asked == system.helpers["fuser"].model.asked == []


async def test_without_any_answer_the_run_scores_zero():
    episode = await ranked({"a": "hm", "b": "hm"}).arun(ITEM)
    assert (episode.outcome, episode.verdict) == (0.0, "unparsed")


async def test_a_ranker_that_names_nobody_favours_nobody():
    items = [make_item(f"What is {k} + 1?", str(k + 1)) for k in range(30)]
    system = ranked({"a": "Answer: 100", "b": "Answer: 200"}, ranker="both are fine", top_k=1)
    winners = {(await system.arun(item)).final[0].text for item in items}
    assert winners == {"Answer: 100", "Answer: 200"}


async def test_a_member_in_both_roles_keeps_its_answer_and_its_verdicts_apart():
    seat = Scripted("a", lambda request: "1" if request.draw == 1 else f"Answer: {5 if request.draw else 4}")
    system = System("rank_and_fuse", {"a": seat, "b": Scripted("b", "Answer: 3")}, roles={"ranker": "a", "fuser": "a"})
    assert (await system.arun(ITEM)).outcome == 1.0
    assert [request.draw for request in seat.asked] == [0, 1, 2]


@pytest.mark.parametrize(
    ("reply", "order"),
    [
        ("2, 1, 3", [2, 1, 3]),
        ("3 > 1", [3, 1, 2]),
        ("Answer 2 is best, then 3.", [2, 3, 1]),
        ("7, 2", [2, 1, 3]),
        ("none", [1, 2, 3]),
        ("1.5", [1, 2, 3]),
    ],
)
def test_an_order_is_read_where_numbers_are_named(reply, order):
    assert named_order(reply, 3) == order


@given(text=st.text(), count=st.integers(1, 6))
@settings(deadline=None)
def test_an_order_has_every_number_once_whatever_was_replied(text, count):
    assert sorted(named_order(text, count)) == list(range(1, count + 1))
