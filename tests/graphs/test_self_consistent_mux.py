"""Which seat's answer is taken."""

import pytest
from scripted import Scripted

from collabsim import System, make_item

ITEM = make_item("What is 2 + 3?", "5")


def by_draw(name, *numbers):
    """A member whose samples are these answers; None is a reply without one."""
    said = ["no idea" if number is None else f"Answer: {number}" for number in numbers]
    return Scripted(name, lambda request: said[request.draw])


def mux(members, samples=3):
    pool = {name: by_draw(name, *numbers) for name, numbers in members.items()}
    return System("self_consistent_mux", pool, options={"samples": samples})


@pytest.mark.parametrize(
    ("members", "outcome"),
    [
        ({"a": (5, 5, 5), "b": (4, 4, 1)}, 1.0),
        ({"a": (5, 5, 1), "b": (4, 4, 4)}, 0.0),
        ({"a": (5, 5, 1), "b": (4, 4, 1)}, 0.5),
        ({"a": (5, 1, 2), "b": (4, 4, 3)}, 0.0),
        ({"a": (5, None, None), "b": (4, 4, None)}, 0.0),
        ({"a": (5, 5, None), "b": (None, None, None)}, 1.0),
        ({"a": (5, 4, 3), "b": (None, None, None)}, 1 / 3),
        ({"a": ("5.0", "10/2", 4), "b": (4, 3, 2)}, 1.0),
    ],
)
async def test_the_most_consistent_member_answers_and_ties_share(members, outcome):
    assert (await mux(members).arun(ITEM)).outcome == pytest.approx(outcome)


async def test_members_that_give_no_answer_at_all_score_zero():
    episode = await mux({"a": (None,) * 3, "b": (None,) * 3}).arun(ITEM)
    assert (episode.outcome, episode.verdict, episode.final) == (0.0, "unparsed", ())


async def test_members_that_tie_share_alike_however_many_answers_each_has():
    episode = await mux({"a": (5, 4), "b": (3, 3)}, samples=2).arun(ITEM)
    assert episode.outcome == 0.0
    tied = await mux({"a": (5, 4), "b": (5, 3)}, samples=2).arun(ITEM)
    assert tied.outcome == pytest.approx(0.5)
    assert len(tied.final) == 4


async def test_a_lone_member_is_not_sampled_again():
    system = mux({"a": (4, 5, 5), "b": (5, 5, 5)})
    assert (await system.arun(ITEM, ["a"])).outcome == 0.0
