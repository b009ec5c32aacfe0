from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collabsim.scorers.reading.numbers import PlusMinus, Range, whole_number


@given(st.integers(-(10**12), 10**12))
def test_integers_are_read_with_and_without_separators(n):
    assert whole_number(str(n)) == n
    assert whole_number(f"{n:,}") == n
    assert whole_number(f"${n:,}") == n


@given(st.integers(-999, 999), st.integers(1, 999))
def test_fractions_are_exact_in_every_notation(a, b):
    value = Fraction(a, b)
    assert whole_number(f"{a}/{b}") == value
    sign = "-" if a < 0 else ""
    assert whole_number(rf"{sign}\frac{{{abs(a)}}}{{{b}}}") == value


@given(st.integers(0, 99), st.integers(1, 8))
def test_mixed_numbers_are_a_sum(whole, part):
    assert whole_number(f"{whole} {part}/9") == whole + Fraction(part, 9)


@given(st.decimals(min_value=-(10**6), max_value=10**6, places=4), st.integers(-20, 20))
def test_scientific_notation_is_exact(mantissa, exponent):
    value = Fraction(mantissa) * Fraction(10) ** exponent
    assert whole_number(f"{mantissa}e{exponent}") == value
    assert whole_number(f"{mantissa} × 10^{exponent}") == value
    assert whole_number(rf"{mantissa} \times 10^{{{exponent}}}") == value


@given(st.integers(0, 999), st.integers(0, 999))
def test_ranges_are_never_differences(low, high):
    for text in (f"{low}-{high}", f"{low} – {high}", f"{low} to {high}"):
        assert whole_number(text) == Range(Fraction(low), Fraction(high))


def test_plus_minus_is_two_values():
    assert whole_number(r"\pm 6") == PlusMinus(Fraction(6)) != whole_number("6")


@pytest.mark.parametrize(
    "text",
    [
        *["nan", "inf", "-inf", "1_000", "0x1F", "1e", "12,48", "1,2,3", "10:30", "1.2.3", "2020-01-15", "", "-", "."],
        *[
            "1/0",
            "2 4/2",
            "0^-1",
            "3+4",
            "2x",
            "5!",
            r"\sqrt{2}",
            "1e99999999",
            "9^99999999",
            "1" * 5000,
            "1/2/3",
            "3 pi",
        ],
    ],
)
def test_everything_else_is_no_number(text):
    assert whole_number(text) is None


@pytest.mark.parametrize(("text", "units"), [("7 Eleven", 7), ("12 apples", 12), ("60 miles/hour", 60)])
def test_unit_words_count_only_where_they_are_allowed(text, units):
    assert whole_number(text) == units
    assert whole_number(text, units=False) is None
