"""Right solutions of HumanEval and MBPP pass their own tests, and a wrong mutation of each fails."""

from __future__ import annotations

import pytest
from code_boxes import data_set, item, require_sandbox, solutions

from collabsim.item import Score
from collabsim.scorers.code.code_scorer import CodeScorer

TASKS = list(solutions())


@pytest.fixture(scope="module")
def scores() -> dict[str, tuple[Score, Score]]:
    require_sandbox()
    texts, items = [], []
    for task, pair in solutions().items():
        record = data_set("mbpp" if task.startswith("MBPP") else "humaneval")[task]
        asked = item(record["input"], tests=record["test"])
        for source in pair:
            texts.append(f"Here is the function.\n```python\n{source}```\n")
            items.append(asked)
    found = CodeScorer().score_all(texts, items)
    return dict(zip(TASKS, zip(found[::2], found[1::2], strict=True), strict=True))


def test_there_are_enough_solutions():
    assert len(TASKS) >= 80


@pytest.mark.parametrize("task", TASKS)
def test_a_right_solution_passes_and_a_mutation_of_it_fails(task, scores):
    right, wrong = scores[task]
    assert (right.score, right.reason) == (1.0, "")
    assert (wrong.score, wrong.verdict) == (0.0, "wrong")
    assert wrong.reason
