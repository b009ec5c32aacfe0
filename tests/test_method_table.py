"""The table of all methods, on simulated members: the code of `benchmarks/methods.py` as it runs on real ones."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
import yaml
from method_rows import BestMember, calls_checked, calls_shown, shown
from methods import METHODS, config_of, finished_rows, main, measure_all

from collabsim import GenerationStore, Pool, SimulatedModel, System, Task
from collabsim.coalitions.calls_kept import KeptCalls
from collabsim.protocols import as_protocol, registered
from collabsim.testing import sample_items

NAMES = ["majority_vote", "debate", "soup", "nudging"]


def member(name, **skill):
    options = {"name": name, "skill": {"default": -1.0, **skill}, "conformity": 0.3}
    return {"model": "simulated:", "options": options, "sampling": {"temperature": 0.0, "max_tokens": 40}}


@pytest.fixture
def config(tmp_path):
    """A config like that of the trained specialists, on questions of two kinds."""
    rows = [
        {"question": f"What is {a} {sign} 3?", "answer": str(answer), "topic": topic, "split": split}
        for topic, sign in (("sums", "+"), ("products", "*"))
        for a, split in ((11, "test"), (12, "test"), (13, "dev"), (14, "dev"))
        for answer in [a + 3 if sign == "+" else a * 3]
    ]
    (tmp_path / "mixed.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = {
        "pool": {"a": member("a", sums=3.0), "b": member("b", products=3.0), "c": member("c")},
        "helpers": {"base": member("base")},
        "protocol": {"name": "soup"},
        "task": {"source": "jsonl:mixed.jsonl", "split": "test", "limit": 4, "dev": {"limit": 4}},
    }
    path = tmp_path / "sweep.yaml"
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    return path


def measured(config, out, names=NAMES):
    """What failed, the rows without their cost, and how many generations were made."""
    out.mkdir(exist_ok=True)
    with GenerationStore(out / "generations.sqlite") as store:
        failed = measure_all(names, config, out, store)
        rows = [{name: value for name, value in row.items() if name != "cost"} for row in finished_rows(out)]
        return failed, rows, store.generated


def test_the_same_command_again_generates_nothing_and_finds_the_same_rows(config, tmp_path):
    failed, rows, generated = measured(config, tmp_path / "out")
    assert (failed, sorted(row["method"] for row in rows)) == ({}, sorted(NAMES))
    assert generated > 0
    assert measured(config, tmp_path / "out") == ({}, rows, 0)


def test_a_run_that_was_stopped_goes_on_with_the_methods_that_are_missing(config, tmp_path):
    _, first, _ = measured(config, tmp_path / "out", ["debate"])
    _, both, generated = measured(config, tmp_path / "out", ["debate", "majority_vote"])
    assert [row["method"] for row in both] == ["majority_vote", "debate"]
    assert both[1:] == first
    # The vote shares its answers with the debate; only further samples of the best member are new.
    votes = {row["samples"] for row in both}
    assert generated == 0 or max(votes) > first[0]["samples"]


def test_a_row_has_values_of_every_coalition_that_fit_together(config, tmp_path):
    _, rows, _ = measured(config, tmp_path / "out", ["debate"])
    (row,) = rows
    assert len(row["v"]) == 8
    assert row["value"] == pytest.approx(row["v"]["a+b+c"])
    worth = sum(estimate["value"] for estimate in row["shapley"].values())
    assert worth == pytest.approx(row["value"] - row["v"][""])
    assert row["gain"]["value"] == pytest.approx(row["value"] - row["self_consistency"])
    assert row["calls"] == {"documented": 6, "made": 6.0, "exact": True, "exceeded": 0}


def test_the_best_member_gets_as_many_samples_as_the_tokens_of_the_method_pay_for(config, tmp_path):
    _, rows, _ = measured(config, tmp_path / "out", ["majority_vote", "soup"])
    by_name = {row["method"]: row for row in rows}
    # A vote of three equal members costs three answers, and a merge one.
    assert by_name["majority_vote"]["samples"] == 3
    assert by_name["soup"]["samples"] == 1
    assert by_name["soup"]["self_consistency"] == by_name["soup"]["best_alone"]


def test_a_method_that_fails_is_told_and_the_others_go_on(config, tmp_path, monkeypatch, capsys):
    names = "cascade,majority_vote"  # its confidence is read off tokens, which simulated members have none of
    arguments = [
        "--config",
        str(config),
        "--out",
        str(tmp_path / "out"),
        "--results",
        str(tmp_path),
        "--methods",
        names,
    ]
    monkeypatch.setattr(sys, "argv", ["methods.py", *arguments])
    assert main() == 1
    said = capsys.readouterr()
    assert "cascade: confidence: probability needs" in said.err
    table = (tmp_path / "methods.md").read_text()
    assert table in said.out
    assert "| majority_vote |" in table
    assert "| cascade |" not in table
    assert [row["method"] for row in json.loads((tmp_path / "methods.json").read_text())] == ["majority_vote"]


def test_every_registered_protocol_has_a_row():
    assert set(METHODS) == {name for name in registered() if as_protocol(name).family != "custom"}


def test_a_method_changes_of_the_pool_only_what_it_needs(config):
    base = yaml.safe_load(config.read_text())
    assert list(config_of(base, "nudging").pool) == ["a", "b"]
    sampled, plain = config_of(base, "self_consistent_mux").pool, config_of(base, "debate").pool
    assert {seat.sampling.temperature for seat in sampled.values()} == {0.7}
    assert {seat.sampling.temperature for seat in plain.values()} == {0.0}
    assert [seat.options for seat in sampled.values()] == [seat.options for seat in plain.values()]


def test_the_best_member_is_chosen_on_dev_and_never_on_test():
    items = tuple(sample_items(40))
    good, poor = SimulatedModel(name="good", skill=3.0), SimulatedModel(name="poor", skill=-3.0)
    task = Task(name="sums", items=items[:20], dev=items[20:], kind="number")
    best = BestMember.of(Pool(poor=poor, good=good), task, GenerationStore(None))
    assert best.seat.name == "good"


def test_fewer_samples_of_the_best_member_are_the_first_of_more():
    items = tuple(sample_items(6))
    task = Task(name="sums", items=items[:3], dev=items[3:], kind="number")
    best = BestMember.of(Pool(a=SimulatedModel(name="a")), task, GenerationStore(None))
    before = best.store.generated
    best.vote(5)
    assert best.store.generated == before + 5 * 3
    best.vote(3)
    assert best.store.generated == before + 5 * 3
    assert np.array_equal(best.vote(1), [episode.outcome for episode in best.own])


def test_calls_beyond_what_a_protocol_documents_are_shown_as_such():
    system = System("majority_vote", Pool({name: SimulatedModel(name=name) for name in "ab"}))
    runs = [
        KeptCalls("coalition", who, "item", calls, 5, 5) for who, calls in (("", 0), ("a", 1), ("b", 1), ("a+b", 3))
    ]
    checked = calls_checked(system, runs)
    assert checked == {"documented": 2, "made": 3.0, "exact": False, "exceeded": 1}
    assert calls_shown(checked) == "3.0 (1 runs above) 2"


def test_an_estimate_is_shown_with_its_interval_and_without_a_negative_zero():
    assert shown({"value": -0.0001, "ci95": [-0.1, 0.1], "rare": True}) == "0.000 rare [-0.100, 0.100]"
    assert shown(None) == "-"
