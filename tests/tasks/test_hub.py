import sys

import pytest

from collabsim.errors import ConfigError, DataError, PrerequisiteError
from collabsim.tasks import load_task

datasets = pytest.importorskip("datasets")


@pytest.fixture
def saved(tmp_path):
    """A data set with two splits and class labels, saved in a folder."""
    features = datasets.Features(
        {
            "sentence": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["bad", "good"]),
            "area": datasets.Value("string"),
        }
    )
    rows = {
        split: [{"sentence": f"{split} {n}", "label": n % 2, "area": "film"} for n in range(6)]
        for split in ("validation", "test")
    }
    tables = {split: datasets.Dataset.from_list(some, features=features) for split, some in rows.items()}
    datasets.DatasetDict(tables).save_to_disk(str(tmp_path / "reviews"))
    return tmp_path


FIELDS = {"question": "sentence", "topic": "area"}


def test_saved_data_set_is_read_with_labels_by_name(saved):
    task = load_task("hub:reviews", base=saved, fields=FIELDS, limit=4, dev={"limit": 2})
    assert {item.gold for item in task.items} <= {"bad", "good"}
    assert {item.topic for item in task.items} == {"film"}
    assert all(item.question.startswith("test") for item in task.items)
    assert all(item.question.startswith("validation") for item in task.dev)


def test_hub_data_set_is_asked_for_by_id_config_and_revision(monkeypatch, tmp_path):
    asked = []

    def load_dataset(path, name=None, *, revision=None):
        asked.append((path, name, revision))
        rows = [{"question": "q?", "choices": {"text": ["x", "y"], "label": ["1", "2"]}, "answerKey": "2"}]
        return datasets.DatasetDict({"test": datasets.Dataset.from_list(rows)})

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    task = load_task("hub:org/set", options={"config": "main", "revision": "abc"}, base=tmp_path)
    assert asked == [("org/set", "main", "abc")]
    assert (task.items[0].gold, task.items[0].view.choices) == ("B", {"A": "x", "B": "y"})


def test_failures_of_the_hub_are_one_line(monkeypatch, tmp_path):
    def load_dataset(*_, **__):
        raise ConnectionError("no route\nto host")

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    with pytest.raises(DataError, match=r"cannot load hub:org/set: no route; check the id"):
        load_task("hub:org/set", base=tmp_path)


def test_unknown_option_split_and_column_name_the_nearest(saved):
    with pytest.raises(ConfigError, match=r"no option 'confg' .did you mean 'config'"):
        load_task("hub:reviews", base=saved, options={"confg": "x"}, fields=FIELDS)
    with pytest.raises(ConfigError, match=r"no split 'tests' .did you mean 'test'"):
        load_task("hub:reviews", base=saved, split="tests", fields=FIELDS)
    with pytest.raises(ConfigError, match=r"no column 'sentense' .did you mean 'sentence'"):
        load_task("hub:reviews", base=saved, fields={"question": "sentense"})


def test_missing_package_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(PrerequisiteError, match=r"pip install datasets"):
        load_task("hub:org/set")
