import pytest
from code_boxes import require_sandbox

import collabsim
from collabsim.errors import ConfigError, DataError
from collabsim.tasks import load_task, make_item, score_answer


@pytest.mark.parametrize(
    ("kind", "response", "gold", "options"),
    [
        ("number", "Answer: 7", 7, None),
        ("number", "Answer: 0.5", 0.5, None),
        ("number", "Answer: 5", ["4", "5"], None),
        ("expression", "\\boxed{x<3}", "(-\\infty,3)", None),
        ("expression", "Yes, it is.", True, None),
        ("exact", "Answer: Lisbon", "Lisbon", None),
        ("choice", "The answer is B.", "B", ["red", "blue"]),
        ("choice", "The answer is B.", "b", {"a": "red", "b": "blue"}),
        ("choice", "The answer is B.", "blue", ["red", "blue"]),
        ("choice", "The answer is B.", 1, ["red", "blue"]),
    ],
)
def test_a_right_reply_scores_1(kind, response, gold, options):
    score = score_answer(kind, response, gold, options)
    assert (score.score, score.verdict) == (1.0, "right")


def test_it_is_the_score_that_an_item_gives():
    for text in ("Answer: 7", "Answer: 8", "no idea"):
        assert score_answer("number", text, "7") == make_item("How many?", "7").score(text)


def test_a_cut_reply_counts_only_what_it_declared():
    assert score_answer("number", "So far 7", "7", finish="length").verdict == "unparsed"
    assert score_answer("number", "Answer: 7. Becau", "7", finish="length").score == 1.0


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ("So.\nAnswer: 8", "last declaration 'Answer: 8'"),
        ("\\boxed{8", "box never closed"),
        ("\\boxed{}", "empty box"),
        ("<think>8", "thinking never closed"),
        ("", "empty"),
        ("I give up", "no answer found"),
        ("The answer is 8 or 9.", "several numbers where one is asked"),
        ("There were 8.", "last number"),
    ],
)
def test_a_score_says_why(response, reason):
    assert score_answer("number", response, "7").reason.startswith(reason)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("number", "7", None), "null"),
        (("number", "7", []), "null"),
        (("number", "7", "  "), "null"),
        (("number", "7", "seventy x"), "kind number"),
        (("number", "7", {"a": 1}), "gold"),
        (("number", 7, "7"), "response"),
        (("choice", "B", "B"), "options"),
        (("choice", "B", "B", ["only one"]), "options"),
        (("choice", "B", "Z", ["red", "blue"]), "none of the options"),
        (("choice", "B", "B", 5), "options"),
        (("number", "7", "7", None, None, None, []), "finish"),
    ],
)
def test_what_cannot_be_scored_is_an_error_that_names_it(arguments, said):
    with pytest.raises(DataError, match=said):
        score_answer(*arguments)


def test_an_unknown_kind_is_refused():
    with pytest.raises(ConfigError, match="numbre"):
        score_answer("numbre", "7", "7")


def test_it_is_at_hand_at_the_top():
    assert collabsim.score_answer is score_answer


@pytest.mark.parametrize(
    ("kind", "reply", "gold", "right"),
    [
        ("number", "Answer: 2.51", "2.5", True),
        ("number", "Answer: 2.6", "2.5", False),
        ("number", "Answer: 250 cm", "2.51 m", True),
        ("expression", "Answer: \\sqrt{2}", "1.414", True),
        ("expression", "Answer: \\sqrt{3}", "1.414", False),
        ("expression", "Answer: [0.67, -0.67]", "[0.6667, -0.6667]", True),
        ("expression", "Answer: [0.67]", "[0.6667, -0.6667]", False),
        ("expression", "Answer: x", "1.414", False),
        ("expression", "Answer: sqrt(-2)", "1.414", False),
    ],
)
def test_a_tolerance_of_the_item_accepts_what_is_near(kind, reply, gold, right):
    row = {"question": "How long?", "answer": gold, "kind": kind, "tolerance": 0.01}
    item = load_task([row, {**row, "question": "How wide?", "tolerance": 0.0}]).items
    strict, lenient = sorted(item, key=lambda entry: entry.extra["tolerance"])
    assert lenient.score(reply).score == float(right)
    assert strict.score(reply).score == 0.0


@pytest.mark.parametrize("gold", ["", None, "def f(x): return 2"])
def test_code_is_judged_by_its_tests_whatever_the_reference_solution(gold):
    require_sandbox()
    right, wrong = (f"```python\ndef f(x):\n    return x + {add}\n```" for add in (1, 2))
    assert score_answer("code", right, gold, tests="assert f(1) == 2", entry_point="f").verdict == "right"
    assert score_answer("code", wrong, gold, tests="assert f(1) == 2", entry_point="f").verdict == "wrong"
