"""Answers with their right scores: the rows of CASES (ids in A) and others of the same kinds."""

import json
from collections import Counter
from pathlib import Path

import pytest

from collabsim.tasks import score_answer

ROWS = [json.loads(line) for line in (Path(__file__).parents[1] / "vectors" / "answers.jsonl").open(encoding="utf-8")]


def test_every_row_has_an_id_of_its_own_and_both_verdicts_occur_often():
    assert len({row["id"] for row in ROWS}) == len(ROWS)
    assert Counter(row["score"] for row in ROWS)[0] > 100
    assert sum(row["id"].startswith("A") for row in ROWS) == 32


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['id']} {row['why']}" for row in ROWS])
def test_answer_has_its_right_score(row):
    score = score_answer(row["kind"], row["response"], row["gold"])
    assert (score.score, row["why"]) == (row["score"], row["why"])
    assert score.reason


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_gold_is_right_in_every_usual_form(row):
    forms = ["Answer: {}", "\\boxed{{{}}}", "<answer>{}</answer>"]
    if row["kind"] == "number":
        forms += ["#### {}", "The answer is {}."]
    for form in forms:
        assert score_answer(row["kind"], form.format(row["gold"]), row["gold"]).score == 1.0, form
