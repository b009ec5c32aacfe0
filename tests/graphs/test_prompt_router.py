"""How a router picks, and what it is told."""

from dataclasses import replace

import pytest
from collabsim.graphs.prompt_router import chosen_number
from scripted import Scripted, last_words

from collabsim import Pool, Seat, System, make_item
from collabsim.system.fitting import afit

ITEM = make_item("What is 2 + 3?", "5")


@pytest.mark.parametrize(
    ("reply", "number"),
    [
        ("2", 2),
        ("2.", 2),
        ("Model 2", 2),
        ("**2**", 2),
        ("The answer is 2", 2),
        ("I choose number 3 because it is best.", 3),
        ("2 of 3", None),
        ("1 or 2", None),
        ("Between 1 and 3, my choice: 3", 3),
        ("4", None),
        ("0", None),
        ("", None),
        ("none of them", None),
        ("1.5", None),
        ("12", None),
    ],
)
def test_a_number_is_read_only_where_one_is_meant(reply, number):
    assert chosen_number(reply, 3) == number


def routed(router, members=("a", "b", "c")):
    pool = {
        name: Seat(name, Scripted(name, f"Answer: {5 if name == 'c' else 4}"), description=f"about {name}")
        for name in members
    }
    helpers = Pool({"guide": Scripted("guide", router)})
    return System("prompt_router", pool, helpers=helpers, roles={"router": "guide"})


def pick(name):
    """A router that always picks the seat described as `about NAME`, whatever its number."""

    def say(request):
        lines = last_words(request).splitlines()
        return next(line.partition(".")[0] for line in lines if line.endswith(f"about {name}"))

    return say


async def test_the_picked_seat_alone_answers():
    episode = await routed(pick("c")).arun(ITEM)
    assert episode.outcome == 1.0
    assert [call.seat for call in episode.calls] == ["guide", "c"]


async def test_present_seats_are_numbered_afresh_and_mapped_back():
    system = routed(pick("c"))
    for present in (["a", "c"], ["b", "c"], ["a", "b", "c"]):
        assert (await system.arun(ITEM, present)).outcome == 1.0
    shown = last_words(system.helpers["guide"].model.asked[0])
    assert "3." not in shown
    assert "about b" not in shown


async def test_a_single_seat_answers_without_a_router():
    system = routed("1")
    assert (await system.arun(ITEM, ["c"])).outcome == 1.0
    assert system.helpers["guide"].model.asked == []


async def test_a_router_that_names_nobody_leaves_the_choice_to_the_items_own_order():
    items = [make_item(f"What is {k} + 1?", str(k + 1)) for k in range(40)]
    system = routed("I cannot say")
    picked = {(await system.arun(item)).calls[-1].seat for item in items}
    assert picked == {"a", "b", "c"}


async def test_a_router_that_is_a_seat_keeps_its_own_answer_apart():
    seat = Scripted("a", lambda request: "1" if request.draw == 1 else "Answer: 5")
    system = System("prompt_router", {"a": seat, "b": Scripted("b", "Answer: 5")}, roles={"router": "a"})
    assert (await system.arun(ITEM)).outcome == 1.0


async def test_a_seat_that_answered_no_dev_item_is_listed_only_among_its_like():
    dev = [make_item(f"What is {k} + 1?", str(k + 1)) for k in range(3)]
    pool = {"mute": Scripted("mute", ""), "dumb": Scripted("dumb", ""), "good": Scripted("good", "Answer: 5")}
    guide = Scripted("guide", "1")
    system = System("prompt_router", pool, helpers=Pool({"guide": guide}), roles={"router": "guide"})
    system = replace(system, fitted=await afit(system, dev))
    assert [call.seat for call in (await system.arun(ITEM)).calls] == ["good"]
    assert (await system.arun(ITEM, ["mute", "dumb"])).calls[0].seat == "guide"


async def test_seats_without_a_description_get_one_from_dev_items():
    dev = [make_item(f"What is {k} + 1?", str(k + 1), topic="sums") for k in range(4)]
    pool = {"weak": Scripted("weak", "Answer: 1"), "good": Scripted("good", lambda r: "Answer: 3")}
    system = System("prompt_router", pool)
    fitted = await afit(system, dev)
    assert fitted.dev_scores == {"weak": 0.25, "good": 0.25}
    assert fitted.data["descriptions"]["good"] == "a model that gets right 25% of sums"
