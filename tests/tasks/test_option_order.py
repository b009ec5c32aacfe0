import pytest
from hypothesis import given
from hypothesis import strategies as st

from collabsim.tasks import make_item
from collabsim.tasks.option_order import gold_histogram, shuffled

OPTIONS = {"A": "red", "B": "blue", "C": "green", "D": "black"}


@given(seed=st.integers(0, 2**31 - 1), gold=st.sampled_from("ABCD"))
def test_gold_text_follows_its_option(seed, gold):
    choices, letter = shuffled(OPTIONS, gold, seed)
    assert choices[letter] == OPTIONS[gold]
    assert list(choices) == list(OPTIONS)
    assert sorted(choices.values()) == sorted(OPTIONS.values())


@given(seed=st.integers(0, 2**31 - 1))
def test_several_golds_follow_their_options(seed):
    choices, letters = shuffled(OPTIONS, ("A", "C"), seed)
    assert {choices[letter] for letter in letters} == {"red", "green"}
    assert list(letters) == sorted(letters)


def test_order_depends_on_the_seed_alone():
    assert shuffled(OPTIONS, "A", 7) == shuffled(dict(OPTIONS), "A", 7)
    assert len({shuffled(OPTIONS, "A", seed)[1] for seed in range(50)}) == 4


def test_gold_letters_are_spread_evenly_by_seeds():
    letters = [shuffled(OPTIONS, "A", seed)[1] for seed in range(4000)]
    assert all(900 < letters.count(letter) < 1100 for letter in OPTIONS)


@given(seed=st.integers(0, 2**31 - 1))
def test_options_about_those_above_keep_their_place(seed):
    choices, letter = shuffled({"A": "red", "B": "blue", "C": "green", "D": "All of the above"}, "D", seed)
    assert (choices["D"], letter) == ("All of the above", "D")


@given(seed=st.integers(0, 2**31 - 1))
def test_options_that_name_other_letters_keep_the_order_of_all(seed):
    options = {"A": "cats", "B": "dogs", "C": "Both A and B", "D": "birds"}
    assert shuffled(options, "C", seed) == (options, "C")


def test_gold_that_is_no_option_is_refused():
    with pytest.raises(ValueError, match="E"):
        shuffled(OPTIONS, "E", 0)


def items(golds):
    return [make_item(f"Which is {number}?", gold, choices=OPTIONS) for number, gold in enumerate(golds)]


def test_histogram_counts_gold_letters_of_items_with_options():
    histogram = gold_histogram([*items("ABBA" + "D"), make_item("How many?", "3")])
    assert dict(histogram.counts) == {"A": 2, "B": 2, "D": 1}
    assert (histogram.items, histogram.majority, histogram.share, histogram.flagged) == (5, "A", 0.4, False)


def test_majority_above_sixty_percent_is_flagged():
    assert not gold_histogram(items("AAABB")).flagged
    assert gold_histogram(items("AAAABB")).flagged


def test_no_items_have_no_majority():
    histogram = gold_histogram([])
    assert (histogram.majority, histogram.share, histogram.flagged) == (None, 0.0, False)
