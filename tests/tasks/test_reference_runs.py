"""Reference solutions are run at load; here by a scorer that looks instead of running, and once in the real sandbox."""

import os
from collections import OrderedDict

import pytest

from collabsim.errors import PrerequisiteError
from collabsim.scorers.code.code_scorer import CodeScorer
from collabsim.tasks import load_task, scorer_for
from collabsim.tasks.reference_runs import SAMPLE, run_references


def programs(count, bad=()):
    return [
        {
            "question": f"Write `f{n}`, which adds {n}.",
            "answer": f"def f{n}(x):\n    return x + {n if n not in bad else n + 1}",
            "tests": f"assert f{n}(1) == {n + 1}",
            "entry_point": f"f{n}",
        }
        for n in range(count)
    ]


@pytest.fixture(autouse=True)
def forgetful(monkeypatch):
    """The scorer of programs, which all tasks of a process share, without what other tests made it remember."""
    monkeypatch.setattr(scorer_for("code"), "_known", OrderedDict())


@pytest.fixture
def ran(monkeypatch):
    """Scores of references without running them: wrong where the program adds one too much."""
    seen = []

    def judge(self, text, item, finish):
        from collabsim.item import Score

        seen.append(item.id)
        wanted = int(item.extra["tests"].rpartition("== ")[2]) - 1
        right = f"return x + {wanted}\n" in text
        return Score(float(right), "right" if right else "wrong", text)

    monkeypatch.setattr(CodeScorer, "judge", judge)
    return seen


def test_a_sample_of_sound_references_is_enough(ran):
    task = load_task(programs(30))
    assert len(task) == 30
    assert len(ran) == SAMPLE
    assert task.notes == {}


def test_all_are_run_when_one_of_the_sample_fails(ran):
    task = load_task(programs(30, bad=range(0, 30, 3)))
    assert len(ran) == 30
    assert len(task) == 20
    assert task.notes == {"unscorable_gold": 10}


def test_all_or_none_are_run_on_request(ran):
    assert len(load_task(programs(20, bad=[3]), self_test="all")) == 19
    ran.clear()
    task = load_task(programs(20, bad=[3]), self_test="none")
    assert (len(task), ran, task.notes) == (20, [], {"untested_program": 20})


def test_programs_without_a_reference_are_counted_as_untested(ran):
    rows = [{key: value for key, value in row.items() if key != "answer"} for row in programs(5)]
    assert load_task(rows).notes == {"untested_program": 5}


def test_a_machine_without_a_sandbox_still_loads_the_task(monkeypatch):
    def judge(self, text, item, finish):
        raise PrerequisiteError("no sandbox here")

    monkeypatch.setattr(CodeScorer, "judge", judge)
    assert load_task(programs(4)).notes == {"untested_program": 4}


def test_references_run_in_the_real_sandbox():
    items = load_task(programs(3, bad=[2]), self_test="none").items
    try:
        items[0].score("```python\npass\n```")
    except PrerequisiteError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))
    bad = {item.id for item in items if "f2" in item.question}
    assert run_references(items, "all").failing == bad
