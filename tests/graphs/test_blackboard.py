"""What stands on the board, and when the posting ends."""

import pytest
from scripted import Scripted, last_words

from collabsim import System, make_item
from collabsim.errors import ConfigError

ITEM = make_item("What is 2 + 3?", "5")


def board(members, **options):
    return System("blackboard", {name: Scripted(name, said) for name, said in members.items()}, options=options)


def rounds_of(system, seat):
    return [request.draw for request in system.pool[seat].model.asked]


async def test_all_members_of_a_round_read_the_same_board_with_the_posts_of_all_rounds():
    by_round = {name: lambda request, k=k: f"Answer: {k}{request.draw}" for k, name in enumerate("abc", 1)}
    system = board(by_round, rounds=3, quorum=3)
    await system.arun(ITEM)
    boards = {last_words(system.pool[name].model.asked[2]) for name in "abc"}
    (shown,) = boards
    assert shown.index("Post 3:") < shown.index("Post 6:")
    assert all(f"Answer: {k}{draw}" in shown for k in (1, 2, 3) for draw in (0, 1))


async def test_posting_ends_when_a_quorum_agrees():
    system = board({"a": "Answer: 5", "b": "Answer: 5", "c": "Answer: 4"}, rounds=4, quorum=2)
    episode = await system.arun(ITEM)
    assert (episode.outcome, len(episode.calls)) == (1.0, 3)


async def test_posting_goes_on_while_fewer_agree():
    system = board({"a": "Answer: 5", "b": "Answer: 5", "c": "Answer: 4"}, rounds=3, quorum=3)
    await system.arun(ITEM)
    assert rounds_of(system, "a") == [0, 1, 2]


async def test_a_quorum_is_never_larger_than_the_coalition():
    system = board({"a": "Answer: 5", "b": "Answer: 5", "c": "Answer: 4"}, rounds=4, quorum=3)
    assert len((await system.arun(ITEM, ["a", "b"])).calls) == 2


async def test_a_member_without_an_answer_neither_posts_nor_holds_up_the_rest():
    system = board({"a": "Answer: 5", "b": "Answer: 5", "c": "who knows"}, rounds=3, quorum=3)
    assert len((await system.arun(ITEM)).calls) == 3


async def test_only_the_latest_posts_are_shown_when_there_are_too_many():
    system = board(
        {name: lambda request, k=k: f"Answer: {k}{request.draw}" for k, name in enumerate("ab", 1)},
        rounds=3,
        quorum=2,
        most_posts=2,
    )
    await system.arun(ITEM)
    shown = last_words(system.pool["a"].model.asked[2])
    assert "Answer: 11" in shown
    assert "Answer: 10" not in shown


def test_a_users_prompt_without_a_place_for_the_board_is_refused():
    with pytest.raises(ConfigError, match=r"must contain {board}"):
        _ = board({"a": "Answer: 5"}, post="Think again.").graph
