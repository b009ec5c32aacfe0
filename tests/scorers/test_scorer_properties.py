"""What holds for every scorer and any text."""

import pickle

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from collabsim.item import ItemView
from collabsim.tasks import make_item, scorer_for

ITEMS = {
    "number": make_item("How many?", "3/4"),
    "expression": make_item("Solve.", "\\frac{3}{4}", kind="expression"),
    "exact": make_item("Who?", "Ada Lovelace"),
    "choice": make_item("Which?", "B", choices=["red", "light blue", "blue", "Vitamin A"]),
}
WORDS = [
    *[
        "the answer is ",
        "Answer: ",
        "not ",
        "A",
        "B",
        " I ",
        "(C)",
        "blue",
        "red",
        "\\boxed{",
        "}",
        "{",
        "3/4",
        "-",
        "1,000",
    ],
    *[
        "10-15",
        "\n",
        "**",
        "<think>",
        "</think>",
        "<answer>",
        "</answer>",
        "####",
        "$",
        "\\frac",
        "=",
        " or ",
        " and ",
        "no",
        "yes",
    ],
    *[
        "x",
        "\\sqrt{2}",
        "\\pm",
        "(-\\infty,3)",
        "[1,2)",
        "x^2+1",
        "\\{1,2\\}",
        "\\pi",
        "<",
        " cm",
        "%",
        "!",
        "_2",
        "|",
        "&",
    ],
    *["?", ".", "½", "−", "^", "e9999", "`", "```", "\\text{", "Wait, it's ", "so ", "10^", "±", "½²"],
]
TEXTS = st.text(max_size=60) | st.lists(st.sampled_from(WORDS), max_size=14).map("".join)
FINISHES = st.sampled_from(["stop", "length", "content_filter", "overflow", "tool_calls"])
KINDS = pytest.mark.parametrize("kind", ITEMS)


@KINDS
@settings(deadline=None)  # a comparison may start a process
@given(text=TEXTS, finish=FINISHES)
@example(text="\x00\ud800", finish="stop")
@example(text="\\boxed{" * 50, finish="stop")
def test_scoring_never_raises_and_is_deterministic(kind, text, finish):
    item = ITEMS[kind]
    score = item.scorer.judge(text, item, finish)
    assert score == item.scorer.judge(text, item, finish) == item.score(text, finish)
    assert score.score in (0.0, 1.0)
    assert (score.verdict == "right") == (score.score == 1.0)
    assert (score.verdict == "unparsed") == (score.extracted is None)


@KINDS
@settings(deadline=None)  # a comparison may start a process
@given(text=TEXTS)
def test_an_extracted_answer_is_read_back_from_its_declaration(kind, text):
    item = ITEMS[kind]
    answer = item.scorer.extract(text, item.view)
    if answer is not None and kind not in ("exact", "expression"):  # texts may hold declarations themselves
        again = item.scorer.extract(f"Answer: {answer.text}", item.view)
        assert again is not None
        assert item.scorer.same(answer, again, item.view)


@KINDS
@settings(deadline=None)  # a comparison may start a process
@given(a=TEXTS, b=TEXTS)
def test_same_is_symmetric_and_reflexive(kind, a, b):
    item = ITEMS[kind]
    first, second = item.scorer.extract(a, item.view), item.scorer.extract(b, item.view)
    if first and second:
        assert item.scorer.same(first, first, item.view)
        assert item.scorer.same(first, second, item.view) == item.scorer.same(second, first, item.view)


@KINDS
@settings(deadline=None)  # a comparison may start a process
@given(text=TEXTS)
def test_filtered_replies_are_never_an_answer(kind, text):
    item = ITEMS[kind]
    assert item.scorer.extract(text, item.view, "content_filter") is None
    assert item.scorer.extract(text, item.view, "overflow") is None


@KINDS
@settings(deadline=None)  # a comparison may start a process
@given(text=TEXTS)
def test_a_cut_reply_says_no_more_than_an_uncut_one(kind, text):
    item = ITEMS[kind]
    cut, uncut = item.scorer.extract(text, item.view, "length"), item.scorer.extract(text, item.view, "stop")
    assert cut is None or cut == uncut


@KINDS
@pytest.mark.parametrize("text", ["", " ", "\n\n", "<think></think>", "**", r"\boxed{}", "Answer:", "Answer: \n\n"])
def test_nothing_is_never_right(kind, text):
    assert ITEMS[kind].score(text).score == 0.0


@KINDS
def test_own_gold_is_right_in_the_usual_forms(kind):
    item = ITEMS[kind]
    for form in (
        "{}",
        "Answer: {}",
        "**Answer:** {}",
        "The answer is {}.",
        "\\boxed{{{}}}",
        "<answer>{}</answer>",
        "#### {}",
    ):
        assert item.score(form.format(item.gold_text)).score == 1.0, form


@KINDS
def test_items_survive_pickling(kind):
    item = pickle.loads(pickle.dumps(ITEMS[kind]))
    assert item.id == ITEMS[kind].id
    assert item.score(f"Answer: {item.gold_text}").score == 1.0


def test_scorers_are_one_object_a_kind():
    assert scorer_for("number") is scorer_for("number")


HOSTILE = {
    "open boxes": "\\boxed{" * 20_000,
    "labels": "Answer: " * 20_000,
    "answer to": "answer to " * 20_000,
    "braces": "{" * 50_000,
    "digits": "1" * 100_000,
    "letters": "A and " * 20_000,
    "emphasis": "*a" * 50_000,
    "lines": "\n" * 100_000,
}


@KINDS
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_are_read_in_bounded_time(kind, text):
    import time

    item = ITEMS[kind]
    view = ItemView("y", (), item.view.choices, kind)
    start = time.process_time()
    item.scorer.extract(text, view)
    assert time.process_time() - start < 5
