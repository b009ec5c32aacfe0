"""What the aggregator seat reads, and what the system is without it."""

import pytest
from scripted import Scripted, last_words

from collabsim import System, make_item
from collabsim.errors import ConfigError
from collabsim.system.fitted import Fitted

ITEM = make_item("What is 2 + 3?", "5")


def system(members, *, aggregator="agg", says="Answer: 5", **options):
    pool = {**{name: Scripted(name, said) for name, said in members.items()}, "agg": Scripted("agg", says)}
    return System("trained_aggregator", pool, options={"aggregator": aggregator, **options})


async def test_the_aggregator_reads_all_proposals_and_its_reply_is_final():
    made = system({"a": "Answer: 4", "b": "Answer: 3"})
    assert (await made.arun(ITEM)).outcome == 1.0
    (asked,) = made.pool["agg"].model.asked
    assert "Answer: 4" in last_words(asked)
    assert "Answer: 3" in last_words(asked)
    assert ITEM.question in last_words(asked)


async def test_without_the_named_aggregator_the_others_vote():
    made = system({"a": "Answer: 5", "b": "Answer: 5", "c": "Answer: 4"}, says="Answer: 0")
    assert (await made.arun(ITEM)).outcome == 0.0
    assert (await made.arun(ITEM, ["a", "b", "c"])).outcome == 1.0


async def test_alone_the_aggregator_and_a_proposer_each_give_their_own_first_answer():
    made = system({"a": lambda request: f"Answer: {request.draw}"}, says=lambda request: f"Answer: {7 + request.draw}")
    for seat, text in (("a", "Answer: 0"), ("agg", "Answer: 7")):
        episode = await made.arun(ITEM, [seat])
        assert ([output.text for output in episode.final], len(episode.calls)) == ([text], 1)


async def test_every_sample_of_a_proposer_is_shown():
    made = system({"a": lambda request: f"Answer: {10 + request.draw}", "b": "Answer: 3"}, samples=3)
    episode = await made.arun(ITEM)
    shown = last_words(made.pool["agg"].model.asked[0])
    assert all(f"Answer: {10 + draw}" in shown for draw in range(3))
    assert len(episode.calls) == 2 * 3 + 1


async def test_proposals_without_an_answer_are_not_shown():
    made = system({"a": "no idea", "b": "Answer: 3"})
    await made.arun(ITEM)
    assert "no idea" not in last_words(made.pool["agg"].model.asked[0])


async def test_with_nothing_to_read_the_aggregator_answers_the_question_itself():
    made = system({"a": "no idea", "b": "none"})
    assert (await made.arun(ITEM)).outcome == 1.0
    (asked,) = made.pool["agg"].model.asked
    assert asked.messages == ITEM.view.messages


async def test_an_unnamed_aggregator_is_the_best_present_seat_and_still_proposes():
    pool = {"a": Scripted("a", "Answer: 4"), "b": Scripted("b", lambda r: "Answer: 5" if r.draw else "Answer: 3")}
    made = System("trained_aggregator", pool, fitted=Fitted(dev_scores={"a": 0.1, "b": 0.9}))
    assert (await made.arun(ITEM)).outcome == 1.0
    assert sorted(request.draw for request in pool["b"].asked) == [0, 1]
    assert "Answer: 3" in last_words(pool["b"].asked[-1])


def test_an_aggregator_that_is_no_seat_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match=r"'aggg' \(did you mean 'agg'"):
        _ = system({"a": "Answer: 4"}, aggregator="aggg").graph


def test_the_trainer_sees_that_the_aggregator_reads_its_partners_and_nobody_reads_it():
    from collabsim.trainers.partner_noise import default_noise, dependencies

    made = system({"a": "Answer: 4", "b": "Answer: 3"})
    assert dependencies(made, "agg") == (True, False)
    assert dependencies(made, "a") == (False, True)
    assert default_noise(made, "agg") == "shared"
