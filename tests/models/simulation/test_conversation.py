from __future__ import annotations

import pytest
from models.simulated_world import item

from collabsim.models.simulation.answer_key import Match
from collabsim.models.simulation.conversation import (
    asks_for_confidence,
    asks_for_several,
    asks_to_go_on,
    declared,
    fitting_options,
    numbered_answers,
    numbered_options,
    others_answers,
    own_answer,
)
from collabsim.request import Message

ITEM = item()
CHOICE = item("Which is a colour?", "B", choices={"A": "north", "B": "blue"})
GRID = item("Fill the grid.", "1 2\n2 1")


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("Answer: 7", ["7"]),
        ("**Answer:** 7", ["7"]),
        ("**Answer: 7**", ["7"]),
        ("I think the answer is 7, because I counted.", ["7"]),
        ("The answer is 3.5.", ["3.5"]),
        ("Final answer: x = 2", ["x = 2"]),
        ("Answer: [1, 2]", ["[1, 2]"]),
        ("Answer: 7\nAnswer: 9", ["7", "9"]),
        ("The answer is not 7.", []),
        ("Answer: <number>", []),
        ("End with the line `Answer: X`.", []),
        ('Write "Answer: 7" at the end.', []),
        ("Answer: [your answer]", []),
        ("Answer: X", []),
        ("Answer 1:", []),
        ("No idea.", []),
    ],
)
def test_declarations_are_told_from_talk(text, answers):
    assert declared(text, ITEM) == answers


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("Answer: B", ["B"]),
        ("Answer: (b)", ["B"]),
        ("The answer is B. blue", ["B"]),
        ("Answer: blue", ["B"]),
        ("Answer: E", []),
    ],
)
def test_declared_choices_are_letters_of_the_item(text, answers):
    assert declared(text, CHOICE) == answers


def test_an_answer_of_several_lines_is_read_whole():
    assert declared("Answer: 1 2\n2 1\n\nThat is it.", GRID) == ["1 2\n2 1"]


def test_a_quoted_block_is_one_speaker_with_its_last_word():
    rest = "Answer 1:\n> Answer: 3\n> No. Answer: 4\n\nAnswer 2:\n> Answer: 5"
    assert others_answers(Match(ITEM, 0, rest), ITEM.view.messages) == ["4", "5"]


def test_unquoted_answers_all_count():
    rest = "Ann: the answer is 3.\nBob: the answer is 4."
    assert others_answers(Match(ITEM, 0, rest), ITEM.view.messages) == ["3", "4"]


def test_later_turns_of_the_user_show_others_answers():
    messages = (*ITEM.view.messages, Message("assistant", "Answer: 1"), Message("user", "> Answer: 8"))
    assert others_answers(Match(ITEM, 0, ""), messages) == ["8"]


def test_the_own_answer_is_the_last_of_the_assistant_after_the_question():
    asked = Match(ITEM, 1, "")
    messages = (Message("assistant", "Answer: 0"), *ITEM.view.messages, Message("assistant", "Answer: 5\nAnswer: 6"))
    assert own_answer(asked, messages) == "6"
    assert own_answer(asked, messages[:2]) is None
    assert own_answer(asked, (*messages, Message("assistant", "Hm."))) is None


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1. red\n2. blue\nReply with the number.", [1, 2]),
        ("0) red\n1) blue\nChoose one by its number.", [0, 1]),
        ("1. red\n2. blue\nWhich is best?", []),
        ("1. red\n3. blue\nReply with the number.", []),
        ("A. red\nB. blue\nReply with the number.", []),
        ("> 1. red\n> 2. blue\nReply with the number.", []),
        ("Reply with a number.", []),
        ("1. Reply with the number.\n2. Or not", []),
    ],
)
def test_options_are_listed_numbers_with_a_request_for_one(text, numbers):
    assert [number for number, _ in numbered_options(text)] == numbers


@pytest.mark.parametrize(
    ("texts", "topic", "best"),
    [
        (["good at algebra", "good at chess", "knows Algebra"], "algebra", [1, 3]),
        (["gets right 20% of algebra, 90% of chess", "gets right 60% of algebra", "good at algebra"], "algebra", [2]),
        (["gets right 20% of such questions", "gets right 35% of such questions"], "", [2]),
        (["good at chess", "a seat"], "algebra", []),
        (["a", "b"], "", []),
    ],
)
def test_the_options_that_fit_a_topic_best_are_found(texts, topic, best):
    assert fitting_options(list(enumerate(texts, 1)), topic) == best


PAIR = (
    "Answer 1:\n> So.\n> Answer: 3\n\nAnswer 2:\n> I do not know.\n\nWhich one is better? Reply with its number only."
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (PAIR, [(1, "3"), (2, None)]),
        (PAIR.replace("Reply with its number only.", "Give your final answer."), []),
        ("Answer 1:\n> Answer: 3\n\nReply with its number only.", []),
        ("> Answer: 3\n\n> Answer: 4\n\nReply with a number.", []),
        ("Post 1:\n> Answer: 3\nPost 2:\n> Answer: 4\nReply with their numbers.", [(1, "3"), (2, "4")]),
        (PAIR.replace("only", "> number"), [(1, "3"), (2, None)]),
    ],
)
def test_answers_to_compare_are_labelled_quotes_with_a_request_for_numbers(text, found):
    assert numbered_answers(text, ITEM) == found


def test_one_number_or_several_are_told_apart_outside_of_quotes():
    assert asks_for_several("Reply with their numbers only.")
    assert not asks_for_several("> all numbers\n\nReply with its number only.")


SURE = "How likely is it that your answer is right? Reply with one number from 0 to 100 only."
GO_ON = "Continue exactly where your reply stops, without repeating any of it."


@pytest.mark.parametrize(("asks", "right", "wrong"), [(asks_for_confidence, SURE, GO_ON), (asks_to_go_on, GO_ON, SURE)])
def test_other_wishes_follow_an_own_turn(asks, right, wrong):
    own = (*ITEM.view.messages, Message("assistant", "Answer: 1"))
    assert asks((*own, Message("user", right)))
    assert not asks((*own, Message("user", wrong)))
    assert not asks((*ITEM.view.messages, Message("user", right)))
    assert not asks(())
