"""The `train:` section, the order of items, the learning rate, the log: what needs no model."""

import json

import pytest
from collabsim.trainers.item_order import visits_of_step
from collabsim.trainers.metrics import Metrics, flat, read_metrics
from collabsim.trainers.objectives import parse_objective
from collabsim.trainers.optimiser import rate
from collabsim.trainers.settings import parse_train
from collabsim.trainers.stopwatch import Stopwatch
from collabsim.trainers.training_items import load_train_items
from hypothesis import given, settings
from hypothesis import strategies as st

from collabsim import make_item
from collabsim.config.schema import TaskConfig
from collabsim.errors import ConfigError, DataError
from collabsim.tasks import load_task
from collabsim.tasks.selection import question_key


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "expected a section"),
        ({}, "'train.seat' is missing"),
        ({"seat": "a", "lerning_rate": 1}, "unknown key 'train.lerning_rate'"),
        ({"seat": "a", "eval": {"evry": 1}}, "did you mean 'every'"),
        ({"seat": "a", "lora": {"rnk": 1}}, "did you mean 'rank'"),
        ({"seat": "a", "objective": "sistem"}, "did you mean 'system'"),
        ({"seat": "a", "objective": {"system": 0}}, "a weight above 0"),
        ({"seat": "a", "objective": {}}, "got nothing"),
        ({"seat": "a", "loss": "ppo"}, "unknown loss 'ppo'"),
        ({"seat": "a", "group": 1}, r"train\.group"),
        ({"seat": "a", "lr": 0}, r"train\.lr"),
        ({"seat": "a", "objective": "sft", "kl": 0.1}, "no use for kl"),
        (
            {"seat": "a", "objective": 3},
            r"train\.objective: Input should be a valid string or a valid dictionary, got 3; put text in quotes$",
        ),
        (
            {"seat": "a", "clip": "wide"},
            r"train\.clip: Input should be a valid number, .* or a valid tuple, got 'wide'$",
        ),
        ({"seat": "a", "lora": 3}, r"train\.lora: Input should be a valid dictionary, got 3$"),
        ({"seat": True}, r"train\.seat: Input should be a valid string, got True \(YAML reads yes"),
        ({"seat": "a", 1: 2}, r"train: expected names in text as keys, got 1; put it in quotes"),
        ({"seat": "a", "lr": 0, "stepps": 1}, r"train\.lr: .*; unknown key 'train\.stepps' \(did you mean 'steps'\?\)"),
        ({"seat": "a", "objective": "rft", "coalition": "shapley"}, "has no coalition"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused_in_words(data, message):
    with pytest.raises(ConfigError, match=message):
        parse_train(data)


def test_one_clip_holds_both_ways_and_two_hold_each_its_own():
    assert parse_train({"seat": "a", "clip": 0.1}).policy_loss().clip == (0.1, 0.1)
    assert parse_train({"seat": "a", "clip": [0.2, 0.28]}).policy_loss().clip == (0.2, 0.28)


def test_a_mixture_is_named_by_its_weights():
    assert parse_objective({"individual": 0.3, "system": 0.7}).name == "0.7*system+0.3*individual"
    assert parse_objective("leave_one_out").name == "leave_one_out"


ITEMS = [make_item(f"What is {k} + 1?", str(k + 1)) for k in range(7)]


@settings(deadline=None)
@given(st.integers(1, 20), st.integers(0, 3))
def test_every_pass_visits_each_item_once_whatever_the_step_size(per_step, seed):
    visits = [visit for step in range(21) for visit in visits_of_step(ITEMS, seed, step, per_step)]
    for number in range(len(visits) // 7):
        once = visits[number * 7 : number * 7 + 7]
        assert {visit.number for visit in once} == {number}
        assert {visit.item.id for visit in once} == {item.id for item in ITEMS}


def test_passes_differ_in_order_and_the_order_of_the_items_means_nothing():
    first, second = (visits_of_step(ITEMS, 0, step, 7) for step in (0, 1))
    assert [v.item.id for v in first] != [v.item.id for v in second]
    assert visits_of_step(ITEMS[::-1], 0, 0, 7) == first


def test_the_learning_rate_rises_and_falls_as_asked():
    config = parse_train({"seat": "a", "steps": 12, "warmup": 2, "schedule": "linear"})
    assert [rate(step, config) for step in (0, 1, 2, 7, 12)] == [0.5, 1.0, 1.0, 0.5, 0.0]
    cosine = parse_train({"seat": "a", "steps": 10, "schedule": "cosine"})
    assert [rate(step, cosine) for step in (0, 5, 10)] == pytest.approx([1.0, 0.5, 0.0])
    assert rate(99, parse_train({"seat": "a", "steps": 10})) == 1.0


def test_a_resumed_log_drops_later_steps_and_half_a_line(tmp_path):
    lines = [json.dumps({"step": step}) for step in (1, 2, 3)]
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines) + '\n{"step": 4, "rew')
    with Metrics(tmp_path, 2) as metrics:
        metrics.write({"step": 3, "again": True})
    assert read_metrics(tmp_path) == [{"step": 1}, {"step": 2}, {"step": 3, "again": True}]


def test_nested_numbers_are_named_by_their_path():
    assert dict(flat({"step": 3, "a": {"b": 1, "c": None}, "d": "text", "e": 0.5})) == {"a/b": 1.0, "e": 0.5}


def test_a_stopwatch_goes_on_where_an_earlier_one_stopped():
    watch = Stopwatch({"learn": 2.0})
    with watch.reset()("learn"):
        pass
    assert watch.total["learn"] >= 2.0
    assert watch.lap.keys() == {"learn"}


def test_items_to_train_on_share_no_question_with_test_and_dev(tmp_path):
    rows = [{"question": f"What is {k} + {k}?", "answer": str(2 * k)} for k in range(30)]
    (tmp_path / "sums.jsonl").write_text("\n".join(map(json.dumps, rows)))
    config = TaskConfig(source="jsonl:sums.jsonl", limit=10)
    task = load_task("jsonl:sums.jsonl", base=tmp_path, limit=10, dev={"limit": 5, "seed": 1})
    wanted = parse_train({"seat": "a", "items": {"limit": 12}}).items
    items = load_train_items(config, tmp_path, task, wanted)
    taken = {question_key(item.question) for item in (*task.items, *task.dev)}
    assert len(items) == 12
    assert not taken & {question_key(item.question) for item in items}
    with pytest.raises(DataError, match="leaves no item to train on"):
        load_train_items(config, tmp_path, load_task("jsonl:sums.jsonl", base=tmp_path), wanted)


def test_a_generator_gives_other_items_to_train_on(tmp_path):
    options = {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 2}
    config = TaskConfig(source="reasoning_gym:chain_sum", options=options)
    task = load_task("reasoning_gym:chain_sum", options=options, limit=20, dev={"limit": 10, "seed": 1})
    items = load_train_items(config, tmp_path, task, parse_train({"seat": "a", "items": {"limit": 25}}).items)
    assert len(items) == 25
    assert {item.view.kind for item in items} == {item.view.kind for item in task.items}
    assert not {item.id for item in items} & {item.id for item in (*task.items, *task.dev)}
