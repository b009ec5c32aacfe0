"""How a text grows by turns, and when it is done."""

import pytest
from collabsim.graphs.switch_generation import joined, whole_words
from scripted import Scripted, last_words

from collabsim import System, make_item
from collabsim.episode import Reply
from collabsim.models.simulation.simulated import SimulatedModel
from collabsim.pool import Pool, Seat
from collabsim.request import Sampling

ITEM = make_item("What is 2 + 3?", "5")


def cut(text):
    return Reply(text, finish="length")


def by_turn(name, *segments):
    return Scripted(name, lambda request: segments[min(request.draw, len(segments) - 1)])


def switch(members, **options):
    return System("switch_generation", members, options={"segment": 8, **options}, order=sorted(members))


async def test_seats_go_on_with_one_text_in_turns():
    system = switch(
        {
            "a": by_turn("a", cut("Two and three mak"), cut("is what we w")),
            "b": by_turn("b", cut("make five, that"), "want.\nAnswer: 5"),
        }
    )
    episode = await system.arun(ITEM)
    assert episode.final[0].text == "Two and three make five, is what we want.\nAnswer: 5"
    assert episode.outcome == 1.0
    assert [(call.seat, call.draw) for call in episode.calls] == [("a", 0), ("b", 0), ("a", 1), ("b", 1)]


async def test_the_first_segment_answers_the_task_and_later_ones_see_the_text_as_their_own_reply():
    system = switch({"a": by_turn("a", cut("Two and three mak")), "b": by_turn("b", "make five.\nAnswer: 5")})
    await system.arun(ITEM)
    (first,), (second,) = system.pool["a"].model.asked, system.pool["b"].model.asked
    assert first.messages == ITEM.view.messages
    assert second.messages[1] == ("assistant", "Two and three")
    assert "Continue exactly where your reply stops" in last_words(second)
    assert first.sampling.max_tokens == second.sampling.max_tokens == 8


async def test_a_segment_that_ends_without_an_answer_is_gone_on_with():
    system = switch({"a": by_turn("a", "Let me think."), "b": by_turn("b", "Answer: 5")})
    episode = await system.arun(ITEM)
    assert episode.final[0].text == "Let me think. Answer: 5"


@pytest.mark.parametrize("silent", ["", "<think>\nhm", Reply("x", "content_filter")])
async def test_a_segment_that_says_nothing_passes_the_turn(silent):
    system = switch({"a": by_turn("a", silent), "b": by_turn("b", "Answer: 5")})
    episode = await system.arun(ITEM)
    assert episode.final[0].text == "Answer: 5"


async def test_a_round_that_adds_nothing_ends_the_text():
    system = switch({"a": by_turn("a", cut("Five it is "), ""), "b": by_turn("b", "")}, turns=9)
    episode = await system.arun(ITEM)
    assert [call.seat for call in episode.calls] == ["a", "b", "a"]
    assert episode.outcome == 0.0


async def test_without_any_text_the_run_scores_zero():
    episode = await switch({"a": by_turn("a", ""), "b": by_turn("b", "")}).arun(ITEM)
    assert (episode.outcome, episode.final, episode.verdict) == (0.0, (), "unparsed")


async def test_a_text_that_never_ends_is_scored_as_a_cut_one():
    system = switch({"a": by_turn("a", cut("and 5 ")), "b": by_turn("b", cut("and 5 "))}, turns=2)
    episode = await system.arun(ITEM)
    assert len(episode.calls) == 4
    assert episode.final[0].finish == "length"
    assert episode.outcome == 0.0


async def test_simulated_members_finish_each_others_texts():
    pool = Pool({name: Seat(name, SimulatedModel(name=name, skill=50.0), sampling=Sampling()) for name in "ab"})
    system = switch(pool, segment=4)
    system.study([ITEM])
    episode = await system.arun(ITEM)
    assert len(episode.calls) == 2
    assert episode.outcome == 1.0


@pytest.mark.parametrize(
    ("text", "whole"), [("one two thr", "one two"), ("one two ", "one two"), ("one", "one"), (" one", " one"), ("", "")]
)
def test_a_cut_text_loses_its_last_piece_of_a_word(text, whole):
    assert whole_words(text) == whole


@pytest.mark.parametrize(
    ("text", "segment", "together"),
    [
        ("", "a", "a"),
        ("a", "b", "a b"),
        ("a ", "b", "a b"),
        ("a", "\nb", "a\nb"),
        ("a", ", b", "a, b"),
        ("a\n", "b", "a\nb"),
    ],
)
def test_segments_are_joined_with_one_blank_where_there_is_none(text, segment, together):
    assert joined(text, segment) == together
