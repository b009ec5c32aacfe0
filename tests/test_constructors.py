"""What the public constructors and helpers say about arguments that cannot be meant, and where results meet old files."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import pickle
from collections.abc import Mapping, Sequence

import pytest
from collabsim.trainers import FinetuneConfig, TrainConfig

from collabsim import (
    GenerationStore,
    Pool,
    Sampling,
    Seat,
    SimulatedModel,
    SweepResult,
    System,
    Task,
    identified,
    load_task,
    make_item,
    protocol,
    read_result,
    score_answer,
    sweep,
)
from collabsim.arguments import check_kind
from collabsim.errors import ConfigError, StoreError, nearest

MODEL = SimulatedModel(name="a")
POOL = Pool(a=MODEL, b=SimulatedModel(name="b", skill=1.0))
ITEM = make_item("What is 2 + 3?", "5")
TASK = Task("sums", (ITEM,))
SYSTEM = System("majority_vote", POOL)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: System("debate", POOL, option={}), "unknown setting 'option' .did you mean 'options'"),
        (lambda: System("debate"), "missing a required argument: 'pool'; expected protocol, pool, options"),
        (lambda: dataclasses.replace(SYSTEM, alon="floor"), "unknown setting 'alon' .did you mean 'alone'"),
        (lambda: System("debate", POOL, roles={"judge": 3}), "roles: expected a mapping of names to text or a list of"),
        (lambda: Pool({1: MODEL}), "seat name 1: expected letters"),
        (lambda: Pool(a=SimulatedModel), "seat 'a': expected a LangChain chat model .*, got the class SimulatedModel"),
        (lambda: Seat("a"), "missing a required argument: 'model'"),
        (lambda: Seat("a", MODEL, samplng=3), "unknown setting 'samplng' .did you mean 'sampling'"),
        (lambda: Seat("a", MODEL, sampling="x"), "sampling: expected a Sampling, got 'x'"),
        (lambda: Seat("a", MODEL, system=3), "system: expected text or None, got 3"),
        (lambda: Sampling(temperature="x"), "temperature: expected a number, got 'x'"),
        (lambda: Sampling(max_tokens=1.5), "max_tokens: expected a whole number, got 1.5"),
        (lambda: Sampling(max_tokens=0), "sampling: max_tokens must be at least 1, got 0$"),
        (lambda: Sampling(stop="x"), "stop: expected a tuple of texts, got 'x'"),
        (lambda: Task("x", ITEM), "items: expected a list with an Item in each place, got an Item"),
        (lambda: Task("x", ("a",)), "items: expected a list with an Item in each place, got a tuple with 'a'"),
        (lambda: Task("x", (ITEM,), floor="chanse"), "floor: expected 'zero' or 'chance', got 'chanse' .did you mean"),
        (lambda: load_task([], dev={1: 2}), "dev: expected a mapping.*, got a dict with the key 1"),
        (lambda: load_task([], dev={"limit": 2, "seed": "x"}), "task.dev.seed: expected a whole number, got .x."),
        (lambda: Task("x"), "missing a required argument: 'items'; expected name, items, dev"),
        (lambda: TrainConfig(seat="a", stps=3), "unknown key 'train.stps' .did you mean 'steps'"),
        (lambda: TrainConfig(), "the key 'train.seat' is missing"),
        (lambda: FinetuneConfig(iteration=3), "unknown key 'finetune.iteration' .did you mean 'iterations'"),
        (lambda: make_item("q"), "missing a required argument: 'answer'; expected question, answer"),
        (lambda: make_item(3, "5"), "question: expected text, got 3"),
        (lambda: make_item("q", "5", knd="number"), "unknown setting 'knd' .did you mean 'kind'"),
        (lambda: score_answer("number", "5"), "missing a required argument: 'gold'"),
        (lambda: identified(MODEL, 3), "identity: expected text, got 3"),
        (lambda: protocol(nam="x"), "unknown setting 'nam' .did you mean 'name'"),
        (lambda: protocol("debate"), "protocol: expected a build function, got 'debate'; give a name"),
        (lambda: GenerationStore(3), "path: expected a path or text or None, got 3"),
        (lambda: read_result(3), "folder: expected a path or text, got 3"),
        (lambda: read_result("~nobody9/x"), "folder: '~nobody9/x' begins with a home folder that cannot be found"),
        (lambda: SYSTEM.run(ITEM, "ab"), "coalition: expected a list of names or None, got 'ab'"),
        (lambda: SYSTEM.run(ITEM, replicas={"a": "x"}), "replicas: expected a mapping of names to a whole number or None"),
        (lambda: SYSTEM.run(ITEM, replicas={"aa": 1}), "replicas: no seat 'aa' .did you mean 'a'"),
        (lambda: asyncio.run(SYSTEM.arun("x")), "item: expected an Item, got 'x'"),
        (lambda: asyncio.run(SYSTEM.arun(ITEM, run_sed=1)), "unknown setting 'run_sed'"),
        (lambda: asyncio.run(SYSTEM.alone_on("x", "a")), "item: expected an Item, got 'x'"),
        (lambda: sweep(SYSTEM, TASK, identity={1: 2}), "identity: expected a mapping or None, got a dict with the key 1"),
        (lambda: System(".:x", POOL), "protocol '.:x' cannot be loaded from '.:x'"),
    ],
)  # fmt: skip
def test_wrong_arguments_of_the_public_names_are_named(call, message):
    with pytest.raises(ConfigError, match=message):
        call()


@pytest.mark.parametrize("out", ["~nobody9/x", ""])
def test_a_run_folder_that_cannot_be_meant_is_refused_and_nothing_is_made(out, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"^out: "):
        sweep(SYSTEM, TASK, out=out)
    assert not list(tmp_path.iterdir())


def test_the_home_folder_is_found_in_python_as_in_a_config(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    made = sweep(SYSTEM, TASK, out="~/runs/one")
    assert made.out == tmp_path / "runs" / "one"
    assert read_result("~/runs/one").values == made.values


def test_what_a_mapping_holds_is_looked_at():
    check_kind("x", {"a": 1}, Mapping[str, int])
    check_kind("x", {"a": "b", "c": ["d"]}, Mapping[str, str | Sequence[str]])
    with pytest.raises(ConfigError, match="got a dict with 'b' for 'a'"):
        check_kind("x", {"a": "b"}, Mapping[str, int])


def test_a_word_is_never_its_own_nearest():
    assert nearest("jsonl", ["jsonl"]) == ""
    assert "did you mean '1'" in nearest(1, ["1"])


@pytest.mark.parametrize("values", [{}, [], 3, {"players": ["a"]}])
def test_values_of_another_version_are_named_and_no_key_error(values, tmp_path):
    (tmp_path / "values.json").write_text(json.dumps(values))
    with pytest.raises(StoreError, match="sweep"):
        repr(read_result(tmp_path))


def test_a_player_that_a_result_does_not_have_is_told_the_nearest():
    result = sweep(SYSTEM, TASK)
    with pytest.raises(KeyError, match=r"no entry 'aa' .did you mean 'a'.*a, b"):
        result.shapley["aa"]
    assert result.shapley.get("aa") is None
    again = pickle.loads(pickle.dumps(SweepResult.from_values(result.values)))
    assert dict(again.shapley) == dict(result.shapley)
