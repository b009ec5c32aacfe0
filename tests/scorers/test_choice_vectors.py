"""Every line of tests/vectors/choices.jsonl, and what holds for any reply to a choice."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collabsim.item import ItemView
from collabsim.scorers.choice.choice_scorer import ChoiceScorer, _committed, _plain_letter
from collabsim.scorers.choice.option_text import plain_text
from collabsim.scorers.choice.phrases import PhraseReader, read_options

SCORER = ChoiceScorer()
VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "vectors" / "choices.jsonl").read_text(encoding="utf-8").splitlines()
]
COLOURS = {"A": "red", "B": "light blue", "C": "blue", "D": "Vitamin A", "E": "none of the above"}
TEXTS = list(COLOURS.values())


def letter_of(reply, options, finish="stop"):
    answer = SCORER.extract(reply, ItemView("x", (), options, "choice"), finish)
    return answer and answer.value


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["id"] for vector in VECTORS])
def test_reply_takes_the_option_of_its_vector(vector):
    assert letter_of(vector["response"], vector["options"]) == vector["answer"], vector["why"]


def test_vectors_are_well_formed():
    assert len({vector["id"] for vector in VECTORS}) == len(VECTORS)
    assert all(vector["gold"] in vector["options"] and vector["why"] for vector in VECTORS)


FORMS = ["{}", "Answer: {}", "The answer is {}.", "**Answer: {}**", "\\boxed{{{}}}", "It is {}.", "So, {}."]
FORMS += ["<answer>{}</answer>", "#### {}", "I choose {}."]
PLAIN = ["{}", "({})", "{}.", "Answer: {}", "The answer is {}.", "**Answer: {}**", "The correct answer is ({})"]


@given(order=st.permutations(TEXTS), text=st.sampled_from(TEXTS), form=st.sampled_from(FORMS))
def test_declared_option_texts_are_found_wherever_they_stand(order, text, form):
    options = dict(zip("ABCDE", order, strict=True))
    assert options[letter_of(form.format(text), options)] == text


@given(letter=st.sampled_from("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), form=st.sampled_from(FORMS))
def test_every_letter_of_26_is_read_in_every_usual_form(letter, form):
    options = {name: f"thing {number}" for number, name in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZ", 100)}
    assert letter_of(form.format(letter), options) == letter


@given(
    letter=st.sampled_from("ABCDEZ"),
    form=st.sampled_from(PLAIN),
    finish=st.sampled_from(["stop", "length"]),
)
def test_plain_replies_are_read_as_the_long_way_reads_them(letter, form, finish):
    view = ItemView("x", (), COLOURS, "choice")
    plain = _plain_letter(form.format(letter), view, finish)
    reading = PhraseReader(read_options(tuple(COLOURS.items())))
    if plain:
        assert plain == _committed(plain_text(form.format(letter)), reading, whole=finish == "stop")[0]


@pytest.mark.parametrize("reply", ["Answer: {}", "{}", "The answer is {}."])
def test_negated_forms_never_take_the_negated_letter(reply):
    for letter in "ABCDE":
        assert letter_of(reply.format(f"not {letter}"), COLOURS) != letter


def test_reason_names_the_declaration():
    found = SCORER.extraction("Let me see.\nAnswer: C, of course", ItemView("x", (), COLOURS, "choice"))
    assert (found.answer.value, found.reason) == ("C", "last declaration 'Answer: C, of course'")


def test_reason_of_two_letters_says_that_none_is_single():
    found = SCORER.extraction("Answer: A or C", ItemView("x", (), COLOURS, "choice"))
    assert found.answer is None
    assert found.reason.startswith("no single option")


ENDLESS = [
    " ",
    ".",
    " -",
    "(A",
    "A, ",
    "so it is ",
    "the ",
    "option 1 ",
    "\\frac{",
    "_{",
    "β",
    "blue ",
    "1,000",
    "not B, ",
    "A ✗ ",
]
HOSTILE = ["A" + piece * (30_000 // len(piece)) for piece in ENDLESS] + ["not " * 10_000 + "A", "if " * 10_000 + "A"]


@pytest.mark.parametrize("text", HOSTILE, ids=[*ENDLESS, "nots", "ifs"])
def test_hostile_replies_are_read_in_bounded_time(text):
    start = time.process_time()
    letter_of(text, COLOURS)
    assert time.process_time() - start < 5
