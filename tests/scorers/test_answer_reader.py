"""Reading answers of mathematics, and when two of them are the same."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collabsim.scorers.mathematics.answer_reader import read
from collabsim.scorers.mathematics.answer_values import (
    Based,
    Expression,
    Interval,
    Listing,
    Matrix,
    Named,
    Ratio,
    Union,
    Vast,
    Words,
)
from collabsim.scorers.mathematics.equality import same
from collabsim.scorers.mathematics.expression_tree import TooLarge
from collabsim.scorers.mathematics.parser import parse
from collabsim.scorers.mathematics.tokens import UnreadableExpression
from collabsim.scorers.reading.numbers import Range
from collabsim.scorers.reading.quantities import Quantity

PIECES = st.sampled_from(
    [
        *("x", "y", "2", "3/4", "\\frac", "{", "}", "(", ")", "[", "]", ",", " ", "-", "+", "\\pm", "^", "_", "!", "|"),
        *(
            "\\sqrt",
            "\\infty",
            "<",
            "=",
            "\\le",
            "\\cup",
            "\\{",
            "\\}",
            "\\text{",
            " cm",
            "%",
            "\\pi",
            "e",
            "i",
            "\\sin",
        ),
        *("&", "\\\\", "≈", "\\begin{pmatrix}", "\\end{pmatrix}", " or ", "and", "yes", "no", ":", "∈", "√", "⌊"),
        *("\\binom", "10", "$", "°", "\\log"),
    ]
)
NOTATIONS = st.text(max_size=30) | st.lists(PIECES, max_size=10).map("".join)

small = st.integers(-9, 9)
polynomials = st.lists(small, min_size=1, max_size=4)


def written(coefficients, *, reverse=False):
    terms = [f"({c})x^{{{k}}}" for k, c in enumerate(coefficients)]
    return "+".join(reversed(terms) if reverse else terms)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1/2", Fraction),
        ("2^{10}", Fraction),
        ("\\frac{1}{2004!}", Fraction),
        ("18 cm", Quantity),
        ("75\\%", Quantity),
        ("10-15", Range),
        ("\\sqrt{2}", Expression),
        ("x^2+1", Expression),
        ("(1,2)", Listing),
        ("3, 5", Listing),
        ("\\pm 6", Listing),
        ("x<3", Interval),
        ("x \\ne 3", Union),
        ("\\emptyset", Union),
        ("\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", Matrix),
        ("x = 3", Named),
        ("10:30", Ratio),
        ("1011_2", Based),
        ("\\text{Tuesday}", Words),
        ("9^{9^{9^{9}}}", Vast),
    ],
)
def test_a_notation_is_read_as_what_it_is(text, kind):
    assert isinstance(read(text).value, kind)


@pytest.mark.parametrize("text", ["", " ", "\\,", "nan", "NaN", "Yes and no", "\\phantom{09}", "$$", "."])
def test_nothing_is_read_from_what_says_nothing(text):
    assert read(text) is None


@pytest.mark.parametrize(
    "text", ["1_000", "2 3", "word", "1/0", "x=", "(1,2)", "((", "\\foo", "|x", "\\frac{1}", "3 +"]
)
def test_what_is_no_expression_is_unreadable(text):
    with pytest.raises(UnreadableExpression):
        parse(text)


@pytest.mark.parametrize("text", ["9^{9^{9}}", "100000!", "1e9999", "2^{-10^{9}}", "\\binom{1000000}{500000}"])
def test_what_cannot_be_worked_out_is_too_large_at_once(text):
    with pytest.raises(TooLarge):
        parse(text)


@settings(deadline=None)
@given(NOTATIONS)
def test_reading_never_raises_and_an_answer_equals_itself(text):
    reading = read(text)
    assert reading == read(text)
    assert reading is None or same(reading, reading)


@settings(deadline=None, max_examples=60)
@given(NOTATIONS, NOTATIONS)
def test_the_order_of_two_answers_never_decides(a, b):
    first, second = read(a), read(b)
    if first and second:
        assert same(first, second) == same(second, first)


@given(
    st.fractions(max_denominator=999), st.sampled_from(["\\frac{%d}{%d}", "%d/%d", "\\dfrac{%d}{%d}", "(%d) / (%d)"])
)
def test_rational_numbers_are_exact_in_every_notation(value, form):
    assert read(form % (value.numerator, value.denominator)).value == value


@settings(deadline=None, max_examples=40)
@given(polynomials)
def test_the_order_of_terms_means_nothing(coefficients):
    assert same(read(written(coefficients)), read(written(coefficients, reverse=True)))


@settings(deadline=None, max_examples=40)
@given(polynomials, polynomials)
def test_polynomials_are_equal_exactly_when_their_coefficients_are(a, b):
    def trimmed(coefficients):
        while coefficients and coefficients[-1] == 0:
            coefficients = coefficients[:-1]
        return coefficients

    assert same(read(written(a)), read(written(b))) == (trimmed(a) == trimmed(b))


@settings(deadline=None, max_examples=40)
@given(small, small, small)
def test_an_expanded_product_is_the_product(a, b, c):
    product, expanded = f"(x+({a}))(x+({b}))", f"x^2+({a + b})x+({a * b})"
    assert same(read(product), read(expanded))
    assert same(read(product), read(f"{expanded}+({c})")) == (c == 0)


@given(st.lists(small, min_size=2, max_size=5), st.randoms(use_true_random=False))
def test_sets_have_no_order_and_tuples_have_one(values, random):
    shuffled = random.sample(values, len(values))
    ordered, mixed = (", ".join(map(str, members)) for members in (values, shuffled))
    assert same(read(f"\\{{{ordered}\\}}"), read(f"\\{{{mixed}\\}}"))
    assert same(read(f"({ordered})"), read(f"({mixed})")) == (values == shuffled)


@given(small, small, st.booleans(), st.booleans())
def test_an_inequality_is_its_interval(a, b, has_low, has_high):
    low, high = min(a, b), max(a, b) + 1
    signs = ["\\le" if closed else "<" for closed in (has_low, has_high)]
    brackets = "[" if has_low else "(", "]" if has_high else ")"
    inequality = read(f"{low} {signs[0]} x {signs[1]} {high}")
    assert same(inequality, read(f"{brackets[0]}{low},{high}{brackets[1]}"))
    assert not same(inequality, read(f"{'(' if has_low else '['}{low},{high}{brackets[1]}"))


@given(st.integers(1, 10**6), st.sampled_from(["cm", "m", "km", "kg", "hours", "apples"]))
def test_a_unit_changes_nothing_against_a_bare_number(size, unit):
    for text in (f"{size} {unit}", f"{size}\\text{{ {unit}}}", f"{size}\\,\\mathrm{{{unit}}}"):
        assert same(read(text), read(str(size)))


def test_percentages_equal_what_they_stand_for_in_both_directions():
    for other in ("75", "0.75", "\\frac34", "75\\%", "75 percent"):
        assert same(read("75\\%"), read(other))
        assert same(read(other), read("75\\%"))
    assert not same(read("75"), read("0.75"))
    assert not same(read("75\\%"), read("7.5"))
