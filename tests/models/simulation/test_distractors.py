from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from models.simulated_world import item

from collabsim.errors import PrerequisiteError
from collabsim.models.simulation.distractors import (
    MOST_DISTRACTORS,
    canonical_answer,
    difficulty_of,
    right_answer,
    wrong_answers,
)
from collabsim.tasks import load_task

GOLDS = ["42", "-7", "12,480", "0.75", "0.0", "1/2", "Paris", "yes", "True", "[1, 2, 3]", "3:45 PM", "007", "9" * 30]


@pytest.mark.parametrize("gold", GOLDS)
def test_wrong_answers_are_distinct_from_each_other_and_from_the_gold(gold):
    wrong = wrong_answers(item("Q", gold), MOST_DISTRACTORS)
    assert len(wrong) == MOST_DISTRACTORS
    assert len({canonical_answer(text) for text in (*wrong, gold)}) == MOST_DISTRACTORS + 1


@given(st.text(min_size=1, max_size=20), st.integers(1, MOST_DISTRACTORS))
def test_any_gold_has_wrong_answers(gold, count):
    one = item("Q", gold)
    wrong = wrong_answers(one, count)
    assert len(wrong) == count
    assert canonical_answer(right_answer(one)) not in map(canonical_answer, wrong)


def test_fewer_distractors_are_the_first_of_more():
    one = item("Q", "42")
    assert wrong_answers(one, 3) == wrong_answers(one, 8)[:3]


def test_yes_is_first_of_all_not_no():
    assert wrong_answers(item("Q", "Yes"), 1) == ("No",)


def test_items_differ_in_their_distractors():
    assert wrong_answers(item("Q1", "42"), 4) != wrong_answers(item("Q2", "42"), 4)


def test_a_stated_difficulty_is_taken_as_it_is():
    assert difficulty_of(item(difficulty=-1.25)) == -1.25


def test_a_derived_difficulty_is_the_items_own():
    assert difficulty_of(item("Q1", difficulty=None)) == difficulty_of(item("Q1", difficulty=None))
    assert difficulty_of(item("Q1", difficulty=None)) != difficulty_of(item("Q2", difficulty=None))


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        ("1/2", "0.5", True),
        ("1,000", "1000", True),
        ("−7", "-7", True),
        (" Paris", "paris ", True),
        ("1/0", "1/0", True),
        ("1/3", "0.33", False),
        ("Paris", "Rome", False),
    ],
)
def test_equal_answers_have_equal_keys(a, b, equal):
    assert (canonical_answer(a) == canonical_answer(b)) is equal


def test_a_program_without_a_reference_cannot_be_simulated():
    (program,) = load_task([{"question": "Write f.", "tests": "assert f() == 1", "entry_point": "f"}]).items
    with pytest.raises(PrerequisiteError, match=r"tests but no reference solution.*use real models"):
        right_answer(program)
