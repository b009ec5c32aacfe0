import pytest

from collabsim.item import ItemView
from collabsim.scorers.mathematics.number_scorer import NumberScorer
from collabsim.tasks import make_item

SCORER = NumberScorer()
VIEW = ItemView("x", (), {}, "number")

# (reply, gold, right); rows with an id are from the vector table of CASES, EX rows from its section on extraction
VECTORS = {
    "A03 last box": (r"First \boxed{3}. Check again: it must be \boxed{4}.", "4", True),
    "EX-03 last of two boxes": (r"\boxed{2} and \boxed{5}", "5", True),
    "A05 open box": (r"The answer is \boxed{42", "42", False),
    "A07 dfrac": (r"\boxed{\dfrac{3}{4}}", r"\frac{3}{4}", True),
    "A09 frac without braces": (r"\boxed{\frac34}", "0.75", True),
    "A11 percent": (r"\boxed{75\%}", "75", True),
    "A13 percent in the gold": (r"\boxed{75}", r"75\%", True),
    "EX-09 percent is what it stands for": (r"\boxed{75\%}", "0.75", True),
    "A15 unit": (r"\boxed{18 cm}", "18", True),
    "A17 thousands and noun": ("The answer is 12,480 apples.", "12480", True),
    "A19 pair": ("The answer is 3,4", "34", False),
    "A23 sign": ("The answer is -7.", "7", False),
    "sign kept": ("The answer is -7.", "-7", True),
    "A25 unicode minus": (r"\boxed{−\frac{1}{2}}", r"-\frac{1}{2}", True),
    "A27 bold label": ("**Answer:** 19", "19", True),
    "A35 scientific": ("The answer is 1.2e-3", "0.0012", True),
    "A37 e without dot": ("The answer is 1e3", "1000", True),
    "A39 mixed number": ("The answer is 2 1/2", "5/2", True),
    "A41 dot kept": ("x=1.5", "x=15", False),
    "variable": ("x=1.5", "x=1.5", True),
    "A45 thinking": ("<think>Maybe the answer is 3.</think> The answer is 8.", "8", True),
    "A47 last declaration": ("Is the answer 5? No. The answer is 7.", "7", True),
    "A49 negation": ("The answer is not 5, it is 7.", "5", False),
    "negation replaced": ("The answer is not 5, it is 7.", "7", True),
    "A51 fbox": (r"\fbox{6}", "6", True),
    "A53 currency word": ("The answer is 29.00 dollars", "29", True),
    "A59 full-width digit": ("The answer is ７", "7", True),
    "A63 nan": ("nan", "5", False),
    "EX-05 empty box": (r"\boxed{}", "0", False),
    "EX-05 blank box": (r"\boxed{ }", "0", False),
    "EX-07 digits of fractions": (r"\boxed{\frac{1}{23}}", r"\frac{12}{3}", False),
    "EX-11 total": ("The total is 12,480.", "12480", True),
    "EX-11 noun": ("12,480 apples", "12480", True),
    "EX-13 currency": ("$29.00", "29", True),
    "EX-15 en dash": ("The answer is –7", "-7", True),
    "EX-15 minus": ("The answer is −7", "-7", True),
    "EX-15 full-width minus": ("The answer is －7", "-7", True),
    "EX-15 small minus": ("The answer is ﹣7", "-7", True),
    "EX-17 bold value": ("**19**", "19", True),
    "EX-19 range is no difference": ("The answer is 10-15", "-5", False),
    "EX-19 range": ("The answer is 10-15", "10-15", True),
    "EX-19 en-dash range": ("The answer is 10–15", "10-15", True),
    "EX-19 range in words": ("The answer is 10 to 15", "10-15", True),
    "EX-23 power of ten": (r"\boxed{1.2\times 10^{-3}}", "0.0012", True),
    "EX-23 cdot": (r"2 \cdot 10^3", "2000", True),
    "EX-25 factorials": (r"\boxed{\frac{1}{2004!}}", "1/2006", False),
    "EX-27 plus-minus": (r"\pm 6", "6", False),
    "EX-29 last side": ("Answer: p+q = 41 + 18 = 59", "59", True),
    "EX-31 unclosed thinking": ("<think>maybe 3. Wait", "3", False),
    "EX-31 no opening tag": ("maybe 3</think> The answer is 8", "8", True),
    "EX-39 underscore": ("1_000", "1000", False),
    "EX-39 inf": ("inf", "1", False),
    "EX-41 decimal comma": ("The answer is 2,5", "2.5", False),
    "LaTeX thousands": (r"\boxed{12{,}480}", "12480", True),
    "thin space": (r"\boxed{12\,480}", "12480", True),
    "marker": ("so it is\n#### 42", "42", True),
    "equation": ("So 3 + 4 = 7", "7", True),
    "expression is no number": ("3+4", "4", False),
    "reason after the value": ("The answer is 59 because p+q = 41", "59", True),
    "angle brackets": ("Answer: <42>", "42", True),
    "echoed placeholder": ("Answer: <number>", "0", False),
    "next line": ("The answer is:\n\n**42**", "42", True),
    "dollar math": (r"Final answer: $\frac{1}{2}$", "0.5", True),
    "alternatives": ("The answer is 7 or 8", "8", False),
    "alternatives, first": ("The answer is 7 or 8", "7", False),
    "time": ("The answer is 10:30", "10", False),
    "exclamation": ("The answer is 5!", "5", True),
    "negative money": ("Answer: -$5", "-5", True),
    "bullet": ("- 5 apples", "5", True),
    "hyphenated name": ("covid-19", "19", False),
    "vulgar fraction": ("2½", "5/2", True),
    "superscript": ("Answer: 10²", "100", True),
    "ordinal": ("The answer is the 5th prime, 11.", "11", True),
    "answer to a sum": ("the answer to 3+4 is 7", "7", True),
    "label on its own line": ("Answer\n42", "42", True),
    "label without colon": ("Answer 42", "42", True),
    "negation alone": ("The answer isn't 5", "5", False),
    "correction": ("The answer is 5. Wait, it's 6.", "6", True),
    "pi": (r"\boxed{3\pi}", "3", False),
    "rate": ("Answer: 60 km/h", "60", True),
    "variable times": ("Answer: 2x", "2", False),
    "difference is no value": ("Answer: 5 - 3", "2", False),
    "tags": ("<answer>42</answer>", "42", True),
    "zero denominator": ("Answer: 1/0", "1", False),
    "Arabic digits": ("Answer: ٤٢", "42", True),
    "date": ("Answer: 2020-01-15", "2020", False),
    "mention before negation": ("It is 7, not 5.", "7", True),
    "several with units": ("Answer: 12 apples and 3 pears", "12", False),
    "unreadable box is final": (r"Answer: 4. Or rather \boxed{x+4}", "4", False),
    "empty": ("", "0", False),
    "question is no declaration": ("The answer is 5? No idea, maybe 6.", "6", True),
}


@pytest.mark.parametrize(("reply", "gold", "right"), VECTORS.values(), ids=VECTORS)
def test_reply_is_right_exactly_when_it_commits_to_the_gold(reply, gold, right):
    item = make_item("How many?", gold, kind="number")
    assert item.score(reply).score == float(right)


@pytest.mark.parametrize("finish", ["content_filter", "overflow"])
def test_filtered_and_overflown_replies_answer_nothing(finish):
    assert SCORER.extract("Answer: 5", VIEW, finish) is None


def test_cut_reply_counts_only_what_it_declared():
    assert SCORER.extract("We have 5 apples and then 7", VIEW, "length") is None
    assert SCORER.extract("We have 5 apples and then 7", VIEW, "stop").value == 7
    assert SCORER.extract("Answer: 5. Because", VIEW, "length").value == 5


def test_last_declaration_outranks_later_mentions():
    assert SCORER.extract("The answer is 12. I checked 3 times, over 4 days.", VIEW).value == 12


def test_unparsed_replies_are_told_apart_from_wrong_ones():
    item = make_item("How many?", "4")
    assert item.score("Answer: 5").verdict == "wrong"
    assert item.score("no idea").verdict == "unparsed"
    assert item.score("no idea", "length").reason == "no answer before the cut"
    assert item.score("Answer: 4", "content_filter").reason == "no answer: content_filter"


def test_any_of_several_golds_is_accepted():
    item = make_item("A root of x^2 = 4?", ["2", "-2"], kind="number")
    assert [item.score(f"Answer: {x}").score for x in ("2", "-2", "4")] == [1.0, 1.0, 0.0]
