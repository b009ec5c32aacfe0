from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collabsim.tasks import make_item


def approximate(gold):
    return make_item("q?", gold, kind="approximate")


@pytest.mark.parametrize(
    ("gold", "reply"),
    [
        ("0.36787944", "Answer: 0.3679"),
        ("0.36787944", "So it is \\boxed{e^{-1}}."),
        ("0.5236", "Answer: $\\frac{\\pi}{6}$"),
        ("8.66", "Answer: \\sqrt{75}"),
        ("1.67", "Answer: 5/3"),
        ("1.67", "Answer: 1.7"),
        ("0.23", "Answer: 0.2266"),
        ("0.23", "Answer: 23%"),
        ("3.54e-07", "The answer is 3.5 \\times 10^{-7}"),
        ("26.0", "It is 26.04 dB."),
        ("-153.59", "Answer: −153.6"),
        ("0.0", "Answer: 0"),
        ("[0.5, 0.66667]", "Answer: [1/2, 2/3]"),
        ("[1, 0, 1]", "Answer: [1, 0, 1]"),
        ("[51.2, 78.15, 125.0]", "Answer: (51.2, 78.1, 125)"),
        ("[3]", "Answer: 3"),
    ],
)
def test_right_answers_round_to_the_gold_or_lie_within_one_percent(gold, reply):
    assert approximate(gold).score(reply).score == 1.0


@pytest.mark.parametrize(
    ("gold", "reply"),
    [
        ("1.67", "Answer: 2"),
        ("2.0", "Answer: 2.04"),
        ("0.5", "Answer: 0.52"),
        ("0.0", "Answer: 0.01"),
        ("7.2", "Answer: -7.2"),
        ("100.0", "Answer: 102"),
        ("[0.5, 0.66667]", "Answer: [2/3, 1/2]"),
        ("[1, 0, 1]", "Answer: [1, 0]"),
        ("[1, 0, 1]", "Answer: 1"),
        ("1.0", "Answer: sin(x)"),
        ("1.0", "Answer: about as much as before"),
        ("1.0", ""),
    ],
)
def test_other_answers_are_not(gold, reply):
    assert approximate(gold).score(reply).score == 0.0


@given(st.integers(-10_000, 10_000), st.integers(-10_000, 10_000), st.sampled_from([1, 10, 1000]))
def test_likeness_does_not_depend_on_which_one_is_the_gold(a, b, scale):
    one, other = (f"{float(Fraction(n, scale)):.3f}" for n in (a, b))
    assert approximate(one).score(f"Answer: {other}").score == approximate(other).score(f"Answer: {one}").score


@given(st.text(max_size=80))
def test_no_text_breaks_it(text):
    item = approximate("0.5")
    assert item.score(text) == item.score(text)
    assert item.score(text).verdict in ("right", "wrong", "unparsed")
