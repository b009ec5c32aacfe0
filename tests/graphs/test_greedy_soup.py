"""Which seats go into a greedy soup, and that dev items alone decide."""

from __future__ import annotations

from itertools import combinations

import pytest

from collabsim import Pool, Sampling, Seat, System, make_item
from collabsim.errors import ConfigError, ProtocolError
from collabsim.models.simulation.simulated import SimulatedModel
from collabsim.system.fitted import Fitted
from collabsim.system.fitting import afit

DEV = [make_item(f"What is {k} + {k + 1}?", str(2 * k + 1)) for k in range(2, 32)]
TEST = [make_item(f"What is {k} times {k + 2}?", str(k * (k + 2))) for k in range(2, 8)]
SKILLS = {"a": -2.0, "b": 0.0, "c": 1.0, "d": 2.5}


def system(skills=SKILLS, **more):
    pool = Pool(
        {
            name: Seat(name, SimulatedModel(name=name, skill=skill), Sampling(temperature=0))
            for name, skill in skills.items()
        }
    )
    helpers = Pool({"base": SimulatedModel(name="base", skill=-1.0)})
    made = System("greedy_soup", pool, helpers=helpers, **more)
    made.study([*DEV, *TEST])
    return made


async def dev_score(made, seats):
    """The dev score of a uniform soup, counted here item by item."""
    soup = System("soup", made.pool, helpers=made.helpers)
    episodes = [await soup.arun(item, seats) for item in DEV]
    return sum(episode.outcome for episode in episodes) / len(DEV)


async def test_every_coalition_gets_the_soup_that_greedy_search_on_dev_gives():
    made = system()
    fitted = await afit(made, DEV)
    for size in (2, 3, 4):
        for seats in combinations(SKILLS, size):
            ranked = sorted(seats, key=lambda seat: (-fitted.dev_scores[seat], seat))
            soup = ranked[:1]
            for seat in ranked[1:]:
                if await dev_score(made, [*soup, seat]) >= await dev_score(made, soup):
                    soup.append(seat)
            assert fitted.data["soups"]["+".join(seats)] == soup
    lengths = {len(soup) for soup in fitted.data["soups"].values()}
    assert len(lengths) > 1, "a test in which every search ends alike shows nothing"


async def test_no_test_item_is_seen_while_fitting():
    made = system()
    asked = []
    for seat in (*made.pool.values(), *made.helpers.values()):
        key = seat.model._key
        seat.model._key = type("Noting", (), {"match": lambda self, m, key=key: asked.append(m) or key.match(m)})()
    await afit(made, DEV)
    said = {message.content for messages in asked for message in messages}
    assert said
    assert not any(item.question in content for item in TEST for content in said)


async def test_the_chosen_seats_alone_speak_and_one_chosen_seat_by_itself():
    soups = {"a+b+c+d": ["d", "c"], "a+d": ["d"]}
    made = system(fitted=Fitted(data={"soups": soups}))
    assert [call.seat for call in (await made.arun(TEST[0])).calls] == ["c+d"]
    two = await made.arun(TEST[0], ["a", "d"])
    assert ([call.seat for call in two.calls], two.final) == (["d"], (await made.alone_on(TEST[0], "d")).final)


async def test_without_dev_items_it_is_refused():
    with pytest.raises(ConfigError, match="dev"):
        await afit(system(), [])
    with pytest.raises(ConfigError, match="not fitted"):
        await system().arun(TEST[0])
    with pytest.raises(ProtocolError, match="chosen on dev"):
        await system(fitted=Fitted(data={"soups": {}})).arun(TEST[0])


async def test_twins_are_worth_the_same_in_every_coalition():
    made = system({"a": 0.5, "b": 0.5, "c": 1.0})
    pool = Pool({**made.pool, "b": made.pool["a"]})
    from dataclasses import replace

    made = replace(made, pool=pool)
    made = replace(made, fitted=await afit(made, DEV))
    for item in TEST:
        assert (await made.arun(item, ["a", "c"])).outcome == (await made.arun(item, ["b", "c"])).outcome
