"""Who comments on whom, and what an author reads."""

import pytest
from collabsim.graphs.feedback import critics_of
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import Scripted, last_words

from collabsim import Pool, System, make_item
from collabsim.episode import Reply

ITEM = make_item("What is 2 + 3?", "5")
NUMBERS = {"a": 4, "b": 6, "c": 5, "d": 7}


def member(name, *, comment="fine by {name}", revised=None):
    """Answers its own number, comments as told, and gives another answer when it is asked to revise."""

    def say(request):
        words = last_words(request)
        if "what is right and what is wrong" in words:
            return comment.format(name=name) if isinstance(comment, str) else comment
        return f"Answer: {NUMBERS[name] if request.draw == 0 or revised is None else revised}"

    return Scripted(name, say)


def feedback(members, **options):
    return System("feedback", members, options=options)


def asked(system, seat, words):
    return [last_words(request) for request in system.pool[seat].model.asked if words in last_words(request)]


async def test_an_author_reads_the_comments_on_its_own_answer_and_revises():
    system = feedback({name: member(name, revised=5) for name in "abc"})
    episode = await system.arun(ITEM)
    assert episode.outcome == 1.0
    (shown,) = asked(system, "a", "Comment 1:")
    assert "> fine by b" in shown
    assert "> fine by c" in shown
    assert "fine by a" not in shown


async def test_a_critic_sees_the_question_and_one_answer():
    system = feedback({name: member(name) for name in "abc"})
    await system.arun(ITEM)
    shown = asked(system, "a", "what is right and what is wrong")
    assert len(shown) == 2
    assert all(ITEM.question in text for text in shown)
    assert sorted("Answer: 6" in text for text in shown) == [False, True]
    assert sorted("Answer: 5" in text for text in shown) == [False, True]


@given(able=st.lists(st.sampled_from("abcdefg"), min_size=2, unique=True), count=st.integers(1, 9))
@settings(deadline=None)
def test_everyone_criticises_and_is_criticised_as_often_and_by_all_when_they_are_few(able, count):
    pairs = [(critic, author) for author in able for critic in critics_of(author, able, count)]
    each = min(count, len(able) - 1)
    assert all(critic != author for critic, author in pairs)
    assert len(set(pairs)) == len(pairs)
    for name in able:
        assert sum(critic == name for critic, _ in pairs) == each
        assert sum(author == name for _, author in pairs) == each


@pytest.mark.parametrize("silence", ["", Reply("It is wrong", "content_filter"), "<think>\nhm"])
async def test_comments_that_say_nothing_are_not_shown_and_nobody_revises_for_them(silence):
    system = feedback({name: member(name, comment=silence, revised=5) for name in "ab"})
    await system.arun(ITEM)
    assert asked(system, "a", "Comment 1:") == []


async def test_a_member_without_an_answer_is_left_out_of_the_circle():
    system = feedback({"a": member("a"), "b": member("b"), "c": Scripted("c", "no idea")}, critics=1)
    episode = await system.arun(ITEM)
    assert [call.draw for call in episode.calls if call.seat == "c"] == [0]
    assert len(asked(system, "a", "Comment 1:")) == len(asked(system, "b", "Comment 1:")) == 1


async def test_a_second_round_comments_on_the_revised_answers():
    system = feedback({name: member(name, revised=9) for name in "ab"}, rounds=2)
    await system.arun(ITEM)
    first, second = asked(system, "a", "what is right and what is wrong")
    assert "Answer: 6" in first
    assert "Answer: 9" in second


async def test_a_judge_reads_the_revised_answers():
    judge = Scripted("judge", "Answer: 5")
    system = System(
        "feedback",
        {name: member(name, revised=9) for name in "ab"},
        options={"final": "judge"},
        helpers=Pool({"judge": judge}),
        roles={"judge": "judge"},
    )
    assert (await system.arun(ITEM)).outcome == 1.0
    assert "Answer: 9" in last_words(judge.asked[0])
    assert "Answer: 4" not in last_words(judge.asked[0])
