import pytest
from hypothesis import given
from hypothesis import strategies as st

from collabsim.item import Item, ItemView
from collabsim.scorers.text.harmless_text import is_harmless
from collabsim.scorers.text.verifier_scorer import Reference, VerifierScorer

SEEN = []


def verify(answer, entry):
    """Right for anagrams; some credit for parts; raises on digits."""
    SEEN.append(answer)
    if any(character.isdigit() for character in answer):
        raise ValueError("digits")
    if sorted(answer) == sorted(entry["answer"]):
        return 1.0
    if entry["answer"] in answer:
        return len(entry["answer"]) / len(answer)
    return {"half": 0.5, "form": 0.05, "nan": float("nan")}.get(answer, 0.0)


def item_of(text="listen", *, nonsense=0.0, check=verify, evaluator="none"):
    scorer = VerifierScorer(check, evaluator)
    return Item("v", "?", Reference(text, {"answer": text}, nonsense), ItemView("v", (), {}, "verifier"), scorer)


def test_other_right_answers_are_right():
    assert item_of().score("Answer: silent").verdict == "right"


def test_verifier_sees_the_extracted_answer_only():
    SEEN.clear()
    item_of().score("I think of listen.\nAnswer: tinsel\n\nBye.")
    assert SEEN == ["tinsel"]


def test_gold_inside_a_longer_answer_earns_nothing():
    score = item_of().score("Answer: listen or so")
    assert (score.score, score.verdict) == (0.0, "wrong")


def test_partial_credit_counts_and_credit_for_form_does_not():
    assert item_of().score("Answer: half").verdict == "partial"
    assert item_of().score("Answer: half").score == 0.5
    assert item_of().score("Answer: form").score == 0.0
    assert item_of(nonsense=0.5).score("Answer: half").score == 0.0


def test_verifier_that_takes_nonsense_is_replaced_by_the_reference():
    item = item_of("False", nonsense=1.0, check=lambda answer, entry: 1.0)
    assert item.score("Answer: True").score == 0.0
    assert item.score("Answer: false.").score == 1.0
    assert VerifierScorer(lambda answer, entry: 1.0).nonsense({}) == 1.0


def test_verifier_that_raises_leaves_the_answer_unparsed():
    score = item_of().score("Answer: 123")
    assert (score.score, score.verdict) == (0.0, "unparsed")
    assert "ValueError" in score.reason


def test_answers_that_are_not_numbers_never_reach_the_verifier():
    SEEN.clear()
    assert item_of().score("Answer: nan").score == 0.0
    assert item_of().score("Answer: 1e999999").score == 0.0
    assert SEEN == []


@pytest.mark.parametrize(
    "reply", ["", " ", "<think>silent", "Answer:", "The answer is not silent.", r"\boxed{silent", "x" * 300]
)
def test_replies_without_an_answer_are_unparsed(reply):
    assert item_of().score(reply).verdict == "unparsed"


def test_cut_reply_counts_only_what_it_declared():
    assert item_of().score("silent", "length").verdict == "unparsed"
    assert item_of().score("Answer: silent", "length").score == 1.0


def test_spacing_alone_makes_no_other_ballot():
    item = item_of()
    answers = item.answers
    ballots = [answers.extract(text) for text in ("Answer: a  b", "Answer:\na\nb", "Answer: ab")]
    assert answers.group(ballots) == [[0, 1], [2]]


@given(st.text(max_size=50))
def test_scoring_never_raises(text):
    score = item_of().score(text)
    assert score.score is not None
    assert 0 <= score.score <= 1


@pytest.mark.parametrize(
    "answer",
    [
        *["__import__('os').system('true')", "().__class__", "open('x')", "[0]*10**9", "x.y", "lambda: 1", "'a'*10**9"],
        *["[i for i in range(9)]", "f'{1}'", "exec('1')"],
    ],
)
def test_code_is_never_inert(answer):
    assert not is_harmless(answer, "python")
    assert not is_harmless(answer, "sympy")


@pytest.mark.parametrize(
    "answer", ["9**9**9", "9**99999", "(9**99)**99", "x**(9**9)", "+".join("x" * 300), "5!", "sin(1, 2)"]
)
def test_endless_arithmetic_is_not_inert(answer):
    assert not is_harmless(answer, "sympy")


@pytest.mark.parametrize(
    "answer", ["35*12 + 99 + 53", "-98*x**3/3 + C", "exp(2*x)*sin(x)", "x**(1/2)", "6*2*(8 - 6)", "2**10"]
)
def test_arithmetic_is_harmless(answer):
    assert is_harmless(answer, "sympy")


@pytest.mark.parametrize(
    "answer", ["[1, 2, 3]", "_ Q\nQ _", "[['Q', '_'], ['_', 'Q']]", "some plain words", "(-1, 2.5)"]
)
def test_literals_and_prose_are_inert_for_eval(answer):
    assert is_harmless(answer, "python")
