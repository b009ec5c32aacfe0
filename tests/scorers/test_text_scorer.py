"""Every line of tests/vectors/texts.jsonl, and what holds for any reply to an open question."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collabsim.item import Item, ItemView
from collabsim.scorers.text.text_scorer import LABELS, TextScorer, normalised, text_key, token_f1
from collabsim.tasks import make_item

SCORER = TextScorer()
VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "vectors" / "texts.jsonl").read_text(encoding="utf-8").splitlines()
]
PIECES = [
    "the ",
    "A",
    "Answer: ",
    "Paris",
    "yes",
    ", ",
    "1,000",
    "-",
    ".",
    "?",
    "é",
    "\n",
    "(",
    ")",
    "I don't know",
    "{",
]
TEXTS = st.text(max_size=60) | st.lists(st.sampled_from([*PIECES, "\\boxed{"]), max_size=10).map("".join)


def item_of(gold):
    gold = gold if isinstance(gold, str) else tuple(gold)
    return Item(id=f"text {gold}", question="?", gold=gold, view=ItemView("x", (), {}, "text"), scorer=SCORER)


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["id"] for vector in VECTORS])
def test_reply_scores_as_its_vector_says(vector):
    score = SCORER.judge(vector["response"], item_of(vector["gold"]), "stop")
    assert score.score == pytest.approx(vector["score"], abs=1e-3), (vector["why"], score)
    assert (score.verdict == "right") == (vector["score"] == 1)


def test_partial_credit_names_its_gold():
    score = SCORER.judge("Answer: New York", item_of(["NYC", "New York City"]), "stop")
    assert (score.verdict, score.reason) == ("partial", "token F1 0.800 with 'New York City'")


def test_exact_credit_gives_nothing_for_a_part():
    score = TextScorer("exact").judge("Answer: New York", item_of("New York City"), "stop")
    assert (score.score, score.verdict) == (0.0, "wrong")


def test_items_of_the_kind_are_made_by_name():
    item = make_item("Who wrote it?", ["Jane Austen", "J. Austen"], kind="text")
    assert item.score("Answer: j. austen").score == 1.0
    assert item.score("").score == 0.0


@pytest.mark.parametrize("gold", ["the", "A", "?", "An", "...", "“The”"])
def test_gold_that_normalises_to_nothing_equals_only_itself(gold):
    item = item_of(gold)
    assert SCORER.judge(f"Answer: {gold}", item, "stop").score == 1.0
    for other in ("", " ", "the a", "!", "B", "and"):
        assert SCORER.judge(f"Answer: {other}", item, "stop").score == 0.0


def test_cut_reply_counts_only_what_it_declared():
    assert SCORER.judge("Paris", item_of("Paris"), "length").verdict == "unparsed"
    assert SCORER.judge("Answer: Paris\nIt is", item_of("Paris"), "length").score == 1.0


def test_votes_group_by_normalised_form():
    item = make_item("Which city?", "Paris", kind="text")
    answers = [
        item.answers.extract(text)
        for text in ("Answer: Paris", "paris.", "Answer: The Paris", "Rome", "Paris (France)")
    ]
    assert item.answers.group(answers) == [[0, 1, 2, 4], [3]]


def test_token_f1_is_the_harmonic_mean_of_precision_and_recall():
    assert token_f1("one two three four", "two three five") == pytest.approx(2 * (2 / 4) * (2 / 3) / (2 / 4 + 2 / 3))


@given(text=TEXTS, gold=TEXTS.filter(lambda text: text.strip()), finish=st.sampled_from(["stop", "length", "overflow"]))
def test_scoring_never_raises_is_deterministic_and_in_range(text, gold, finish):
    item = item_of(gold)
    score = SCORER.judge(text, item, finish)
    assert score == SCORER.judge(text, item, finish)
    assert 0.0 <= score.score <= 1.0
    assert (score.verdict == "right") == (score.score == 1.0)


@given(text=TEXTS)
def test_own_canonical_form_is_right(text):
    answer = SCORER.gold(text, item_of("x").view)
    if answer is not None and not answer.value.startswith("="):
        canonical = answer.value if answer.value in LABELS else normalised(answer.text)
        assert SCORER.same(answer, SCORER.gold(canonical, item_of("x").view), item_of("x").view)


@given(a=TEXTS, b=TEXTS)
def test_f1_and_sameness_do_not_depend_on_the_order_of_texts(a, b):
    view = item_of("x").view
    first, second = SCORER.gold(a, view), SCORER.gold(b, view)
    if first and second:
        assert SCORER.same(first, second, view) == SCORER.same(second, first, view)
        assert SCORER.same(first, first, view)


@given(text=TEXTS)
def test_blank_texts_alone_have_no_key(text):
    assert (text_key(text) == "") == (text_key(f" {text} ") == "")
    assert text_key("") == ""
