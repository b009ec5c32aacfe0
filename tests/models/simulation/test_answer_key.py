from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from models.simulated_world import item

from collabsim.models.simulation.answer_key import AnswerKey
from collabsim.request import Message, with_text

SUM = item("What is 1 + 2?", "3")
LONG_SUM = item("What is 1 + 22?", "23")


def user(text: str):
    return (Message("user", text),)


def found(key: AnswerKey, messages) -> str | None:
    match = key.match(messages)
    return match.item.gold if match else None


def test_a_prompt_matches_word_by_word():
    key = AnswerKey([SUM, LONG_SUM])
    assert found(key, SUM.view.messages) == "3"
    assert key.match(SUM.view.messages).rest == ""


def test_a_question_inside_another_wording_matches():
    assert found(AnswerKey([SUM]), user("Question: What is 1 + 2?\nThink first.")) == "3"


def test_a_quoted_question_of_several_lines_matches():
    story = item("Ann has 2 pears.\nShe eats one.\nHow many are left?", "1")
    quoted = "\n".join(f"> {line}" for line in story.question.splitlines())
    assert found(AnswerKey([story, SUM]), user(f"Who should answer this?\n\n{quoted}")) == "1"


def test_a_question_inside_a_longer_number_does_not_match():
    short = item("1 + 2", "3")
    assert found(AnswerKey([short]), user("What is 11 + 2?")) is None
    assert found(AnswerKey([short]), user("What is 1 + 22?")) is None
    assert found(AnswerKey([short]), user("What is 1 + 2?")) == "3"


def test_the_longest_question_wins():
    short, long = item("What is 1 + 2", "3"), item("What is 1 + 2 + 4", "7")
    assert found(AnswerKey([short, long]), user("Well: What is 1 + 2 + 4, please?")) == "7"


def test_the_latest_turn_wins_over_examples():
    key = AnswerKey([SUM, LONG_SUM])
    messages = (*LONG_SUM.view.messages, Message("assistant", "Answer: 23"), *user("Now: What is 1 + 2?"))
    assert found(key, messages) == "3"
    assert key.match(messages).turn == 2


def test_the_first_turn_is_found_when_later_ones_ask_nothing_new():
    messages = (*SUM.view.messages, Message("assistant", "Answer: 4"), *user("Are you sure?"))
    assert AnswerKey([SUM]).match(messages).turn == 0


def test_only_the_user_asks():
    assert AnswerKey([SUM]).match((Message("assistant", SUM.question), Message("system", SUM.question))) is None


def test_items_with_one_question_are_told_apart_by_their_options():
    first = item("Which is true?", "A", choices={"A": "ice is cold", "B": "ice is hot"})
    second = item("Which is true?", "B", choices={"A": "up is down", "B": "up is up"})
    key = AnswerKey([first, second])
    assert found(key, first.view.messages) == "A"
    assert found(key, user("Which is true?\n(A) up is down\n(B) up is up")) == "B"


def test_a_question_with_two_golds_is_unknown_unless_they_agree():
    other = item("What is 1 + 2?", "three")
    twin = item("What is 1 + 2?", "3", choices={})
    assert AnswerKey([SUM, other]).match(user("What is 1 + 2?")) is None
    assert found(AnswerKey([SUM, twin]), user("What is 1 + 2?")) == "3"


def test_the_rest_is_what_stands_around_the_prompt():
    messages = with_text(SUM.view.messages, "> Answer: 9")
    assert AnswerKey([SUM]).match(messages).rest.strip() == "> Answer: 9"


def test_the_rest_has_no_line_of_the_tasks_own_prompt():
    own = SUM.view.messages[0].content.splitlines()[-1]
    match = AnswerKey([SUM]).match(user(f"Solve What is 1 + 2? now.\n{own}\nPlease."))
    assert own not in match.rest
    assert "Please." in match.rest


def test_a_key_with_known_items_is_the_same_key():
    key = AnswerKey([SUM])
    assert key.with_items([SUM]) is key
    assert len(key.with_items([SUM, LONG_SUM])) == 2


def test_an_empty_key_knows_nothing():
    assert AnswerKey().match(SUM.view.messages) is None
    assert AnswerKey().match(()) is None


@given(
    st.sets(st.text("ab c", min_size=1, max_size=12).map(str.strip), min_size=1, max_size=8),
    st.text("ab c", max_size=30),
)
def test_the_window_finds_the_longest_question_that_a_plain_search_finds(questions, text):
    items = [item(question, question) for question in questions if question]
    match = AnswerKey(items).match(user(text))
    pattern = r"(?<![a-c]){}(?![a-c])"
    plain = [q for q in questions if q and re.search(pattern.format(re.escape(q)), text)]
    assert (len(match.item.question) if match else 0) == max(map(len, plain), default=0)
