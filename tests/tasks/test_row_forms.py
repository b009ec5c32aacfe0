import json

import pytest

from collabsim.tasks import row_forms
from collabsim.tasks.record import Unusable


def test_gold_of_a_worked_solution_is_its_last_box():
    read = row_forms.worked(question="problem", answer="solution")
    row = {"problem": "p?", "solution": r"First \boxed{3}, then $\boxed{\frac{1}{\sqrt{2}}}$."}
    assert read(row)["answer"] == r"\frac{1}{\sqrt{2}}"
    assert read({"problem": "p?", "solution": "no box"})["answer"] is None


def test_distractors_may_be_one_list_and_a_missing_gold_stays_missing():
    read = row_forms.with_distractors("ideal", ("distractors",), question="question", topic="config")
    row = read({"question": "q?", "ideal": "a", "distractors": ["b", "c"], "config": "SeqQA"})
    assert (row["choices"], row["answer"], row["topic"]) == (["a", "b", "c"], "a", "SeqQA")
    assert read({"question": "q?", "ideal": None, "distractors": ["b"]})["answer"] is None


def test_the_protocol_stands_before_its_question():
    row = row_forms.protocols({"question": "why?", "ideal": "a", "distractors": ["b"], "protocol": "Step 1."})
    assert row["question"] == "Step 1.\n\nwhy?"


def test_questions_that_annotators_found_flawed_are_left_out():
    assert row_forms.mmlu_redux({"error_type": "ok", "config": "law"})["topic"] == "law"
    with pytest.raises(Unusable, match="flawed_question"):
        row_forms.mmlu_redux({"error_type": "wrong_groundtruth"})


@pytest.mark.parametrize(
    ("scores", "reason"),
    [(None, "no_options"), ({"a": 1, "b": 1}, "several_right_options"), ({"a": 0, "b": 0}, "several_right_options")],
)
def test_chembench_keeps_questions_with_one_right_option(scores, reason):
    example = {"input": "q?", "target_scores": json.dumps(scores) if scores else None}
    with pytest.raises(Unusable, match=reason):
        row_forms.chembench({"examples": [example]})
    good = row_forms.chembench({"examples": [{"input": "q?", "target_scores": '{"a": 0, "b": 1}'}], "config": "lab"})
    assert (good["choices"], good["answer"], good["topic"]) == (["a", "b"], "b", "lab")


@pytest.mark.parametrize(
    ("text", "question", "options"),
    [
        ("Pick: (a) one; (b) two. Which is correct?", "Pick: Which is correct?", {"A": "one", "B": "two"}),
        ("Which codes? (a) {0, 1}. (b) (1, 2). (c) {2}.", "Which codes?", {"A": "{0, 1}", "B": "(1, 2)", "C": "{2}"}),
        ("As (b) says: (a): X, (b): Y.", "As (b) says:", {"A": "X", "B": "Y"}),
    ],
)
def test_options_in_a_sentence_are_taken_apart(text, question, options):
    assert row_forms.inline_options(text) == (question, options)


def test_a_question_without_its_options_is_unusable():
    with pytest.raises(Unusable, match="no_options"):
        row_forms.inline_options("Which colour (a) is darkest?")


@pytest.mark.parametrize(
    "text", ["See Fig. Q3.", "the circuit in the figure", "shown in ./x/maze.png", "Figure Q8 shows"]
)
def test_questions_about_a_picture_are_left_out(text):
    with pytest.raises(Unusable, match="needs_picture"):
        row_forms.theoremqa({"input": text, "output": "1", "answer_type": "integer"})
    assert (
        row_forms.theoremqa({"input": "the orbit (Fig. 13.20)", "output": "1", "answer_type": "integer"})["kind"]
        == "number"
    )


def test_a_picture_beside_the_question_counts_too():
    with pytest.raises(Unusable, match="needs_picture"):
        row_forms.theoremqa({"Question": "q?", "Answer": "1", "Answer_type": "float", "Picture": b"png"})


@pytest.mark.parametrize(
    ("assertion", "name"),
    [
        ("assert f(1) == 2", "f"),
        ("assert set(similar((1, 2))) == {2}", "similar"),
        ("assert (Diff([1], [2])) == [1]", "Diff"),
        ("assert not is_odd (3) == False", "is_odd"),
        ("assert math.isclose(area(2), 4.0)", "area"),
        ("assert sum(10, 15) == 6", "sum"),
        ("assert f(", None),
        ("x = 1", None),
    ],
)
def test_the_tested_function_is_found_in_an_assertion(assertion, name):
    assert row_forms.tested_function(assertion) == name


def test_hub_rows_of_programs_bring_solution_setup_and_one_shown_test():
    row = row_forms.mbpp(
        {
            "text": "Add two numbers.",
            "code": "def add(a, b):\n    return a + b",
            "test_list": ["assert add(1, 2) == 3", "assert add(0, 0) == 0"],
            "test_setup_code": "import math",
        }
    )
    assert row["question"] == "Add two numbers.\nYour code should pass this test:\nassert add(1, 2) == 3"
    assert (row["entry_point"], row["setup"], row["tests"].count("assert")) == ("add", "import math", 2)
    assert row["answer"].startswith("def add")
    human = row_forms.humaneval(
        {"prompt": "import math\n\ndef f(x):\n    '''Doc.'''\n", "canonical_solution": "    return x\n",
         "test": "def check(candidate): ...", "entry_point": "f"}
    )  # fmt: skip
    assert human["prompt"].startswith("import math")
    assert human["answer"] == "import math\n\ndef f(x):\n    '''Doc.'''\n    return x\n"


def test_one_name_that_is_no_json_is_an_answer_by_itself():
    assert row_forms.popqa({"input": "q?", "output": "Nice"})["answer"] == "Nice"
    assert row_forms.popqa({"question": "q?", "possible_answers": '["a", "b"]'})["answer"] == ["a", "b"]


@pytest.mark.parametrize(
    ("gold", "tolerance"),
    [
        ("0.36787944", 0.01),
        ("0.23", 0.005 / 0.23),
        ("2.0", 0.01),
        ("1.5", 0.05 / 1.5),
        ("0.4", 0.01),
        ("-0.166", 0.01),
        ("3.54e-07", 0.01),
        ("[0.5, 0.12]", 0.005 / 0.12),
    ],
)
def test_a_rounded_gold_allows_what_rounds_to_it(gold, tolerance):
    assert row_forms.rounding(gold) == pytest.approx(tolerance)
