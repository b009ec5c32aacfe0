"""What public functions say about arguments that cannot be meant."""

from __future__ import annotations

import asyncio
import inspect

import numpy as np
import pytest
from collabsim.trainers import TrainConfig, atrain, multiagent_finetuning, train
from collabsim.trainers.finetune.finetuning_settings import FinetuneConfig
from collabsim.trainers.keywords import FinetuneSettings, TrainSettings
from hypothesis import given
from hypothesis import strategies as some

from collabsim import Pool, SimulatedModel, System, asweep, from_graph, load_task, make_item, sweep
from collabsim.arguments import Count, check_kind, checked, fits, same_arguments, words
from collabsim.coalitions.sweep import plan_sweep
from collabsim.errors import ConfigError
from collabsim.tasks import Task

POOL = Pool(a=SimulatedModel(name="a"), b=SimulatedModel(name="b", skill=1.0))
ITEM = make_item("What is 2 + 3?", "5")
TASK = Task("sums", (ITEM,))
SYSTEM = System("majority_vote", POOL)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"methd": "exact"}, r"unknown setting 'methd' \(did you mean 'method'\?\); known: system, task, method, seed"),
        ({"players": "foo"}, "players: expected 'seats' or 'models', got 'foo'$"),
        ({"players": "model"}, r"got 'model' \(did you mean 'models'\?\)"),
        ({"seed": "x"}, "seed: expected a whole number, got 'x'"),
        ({"seed": True}, "seed: expected a whole number, got True"),
        ({"seed": 1.5}, "seed: expected a whole number, got 1.5"),
        ({"concurrency": 0}, "concurrency: expected a whole number of at least 1, got 0"),
        ({"concurrency": "8"}, "concurrency: expected a whole number of at least 1, got '8'"),
        ({"budget": -1}, "budget: expected a whole number of at least 1 or None, got -1"),
        ({"method": 3}, "method: expected text, got 3"),
        ({"method": "exakt"}, "unknown method 'exakt' .did you mean 'exact'"),
        ({"out": 5}, "out: expected a path or text or None, got 5; name the run folder"),
        ({"on_missing": "x"}, "on_missing: expected 'refuse' or 'drop_items', got 'x'"),
        ({"progress": print}, "progress: expected a Progress or None, got a builtin_function_or_method"),
        ({"identity": 3}, "identity: expected a mapping or None, got 3"),
    ],
)
def test_a_sweep_says_what_it_expected_and_what_came(settings, message):
    for call in (sweep, plan_sweep, lambda *given, **more: asyncio.run(asweep(*given, **more))):
        with pytest.raises(ConfigError, match=message):
            call(SYSTEM, TASK, **settings)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sweep(SYSTEM, "reasoning_gym:x"), r"task: expected a Task, got 'reasoning_gym:x'; load_task\("),
        (lambda: sweep("debate", TASK), r"system: expected a System, got 'debate'; System\("),
        (lambda: sweep(SYSTEM), "missing a required argument: 'task'; expected system, task, method"),
        (lambda: sweep(SYSTEM, TASK, "exact"), "too many positional arguments; expected system, task, method"),
        (
            lambda: train(SYSTEM, TASK, "items", seat="a"),
            "items: expected a list with an Item in each place, got 'items'",
        ),
        (lambda: train(SYSTEM, TASK, [ITEM, "x"], seat="a"), "an Item in each place, got a list with 'x'"),
        (lambda: train(SYSTEM, TASK, [ITEM], seat="a", resume="yes"), "resume: expected True or False, got 'yes'"),
        (lambda: train(SYSTEM, TASK, [ITEM], seat="a", objectiv=1), "'objectiv' .did you mean 'objective'"),
        (
            lambda: train(SYSTEM, TASK, [ITEM], TrainConfig(seat="a"), steps=3),
            "or its settings as keywords, got both .steps",
        ),
        (
            lambda: train(SYSTEM, TASK, [ITEM], {"seat": "a"}),
            r"config: expected a TrainConfig or None, got a dict; give Tr",
        ),
        (
            lambda: asyncio.run(atrain(SYSTEM, TASK, [ITEM], seat="a", concurrency=0)),
            "concurrency: .* at least 1, got 0",
        ),
        (lambda: multiagent_finetuning(POOL, [ITEM], out="x", iteration=3), "did you mean 'iterations'"),
        (lambda: multiagent_finetuning(POOL, [ITEM]), "missing a required argument: 'out'"),
        (lambda: multiagent_finetuning(["a"], [ITEM], out="x"), "pool: expected a mapping of seat name to chat model"),
        (lambda: from_graph(3, playrs=[]), "unknown setting 'playrs' .did you mean 'players'"),
        (lambda: from_graph(3, players="ab"), "players: expected a list of names or None, got 'ab'"),
        (lambda: SYSTEM.run("2 + 3"), r"item: expected an Item, got '2 \+ 3'; give task.items"),
        (lambda: SYSTEM.run(ITEM, run_sed=1), "unknown setting 'run_sed' .did you mean 'run_seed'"),
        (lambda: SYSTEM.run(ITEM, run_seed="x"), "run_seed: expected a whole number, got 'x'"),
        (lambda: Pool(["a"]), r"pool: expected a mapping of seat name to chat model, got a list; write Pool\("),
        (lambda: System(3, POOL), "protocol: expected a name, `package.module:function` or a build function, got 3"),
        (lambda: System("debate", ["a"]), "pool: expected a mapping of seat name to chat model, got a list"),
        (lambda: System("debate", POOL, options=3), "options: expected a mapping, got 3"),
        (lambda: System("debate", POOL, alone="floo"), "alone: expected 'answers' or 'floor', got 'floo'"),
        (lambda: System("debate", POOL, order="ab"), "order: expected a list of names or None, got 'ab'"),
        (lambda: System("debate", POOL, store="x.sqlite"), "store: expected a GenerationStore, got 'x.sqlite'"),
        (lambda: load_task("jsonl:x", limt=3), "unknown setting 'limt' .did you mean 'limit'"),
        (lambda: load_task("jsonl:x", limit="x"), "limit: expected at least 1 item, got 'x'"),
        (lambda: load_task("jsonl:x", seed="x"), "seed: expected a whole number, got 'x'"),
        (lambda: load_task("jsonl:x", dev=3), "dev: expected a mapping or None, got 3; write"),
        (lambda: load_task(3), "source: expected text or a list with a mapping in each place, got 3; name"),
    ],
)
def test_wrong_arguments_are_named_with_what_to_do(call, message):
    with pytest.raises(ConfigError, match=message):
        call()


def test_a_number_of_numpy_is_refused_by_name_before_it_meets_json():
    with pytest.raises(ConfigError, match=r"seed: expected a whole number, got np.int64\(3\)"):
        sweep(SYSTEM, TASK, seed=np.int64(3))


def test_system_and_task_may_be_given_by_name():
    assert sweep(system=SYSTEM, task=TASK).players == ("a", "b")


def test_help_and_editors_see_the_settings_of_a_sweep():
    shown = inspect.signature(sweep)
    assert list(shown.parameters) == list(inspect.signature(plan_sweep).parameters)
    assert shown.parameters["method"].default == "auto"
    assert shown.return_annotation == "SweepResult"
    assert "Evaluate coalitions" in sweep.__doc__


@pytest.mark.parametrize(("settings", "config"), [(TrainSettings, TrainConfig), (FinetuneSettings, FinetuneConfig)])
def test_the_typed_keywords_are_the_settings(settings, config):
    assert set(settings.__annotations__) | {"items"} == set(config.model_fields)


@given(some.one_of(some.integers(), some.booleans(), some.floats(), some.text(), some.none()))
def test_a_kind_is_refused_exactly_where_it_does_not_fit(value):
    for kind in (int, float, str, bool, None, Count, int | None, str | bool):
        if fits(value, kind):
            check_kind("x", value, kind)
        else:
            with pytest.raises(ConfigError, match="x: expected"):
                check_kind("x", value, kind)
    assert fits(value, int) == (type(value) is int)
    assert fits(value, float) == (type(value) in (int, float))
    assert fits(value, Count) == (type(value) is int and value >= 1)


def test_kinds_have_plain_names():
    assert words(int | None) == "a whole number or None"
    assert words(Count) == "a whole number of at least 1"
    assert words(Task) == "a Task"


def test_a_parameter_that_only_type_checkers_know_is_left_to_the_function():
    @checked()
    def taking(one: Nowhere, *, two: int = 0) -> tuple:  # noqa: F821
        return one, two

    assert taking("anything") == ("anything", 0)
    with pytest.raises(ConfigError, match="two: expected a whole number, got 'x'"):
        taking("anything", two="x")


def test_same_arguments_hands_everything_on():
    @same_arguments(plan_sweep)
    def naming(*given, **settings) -> str:
        return f"{given} {settings}"

    assert naming(1, seed=2) == "(1,) {'seed': 2}"
