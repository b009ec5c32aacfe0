"""The typed result of a sweep, against the `values.json` that it stands for."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest

from collabsim import Pool, SimulatedModel, System, load_task, read_result, sweep
from collabsim.coalitions.result import SweepResult
from collabsim.errors import StoreError

TESTS = Path(__file__).parents[1]
EARLY = TESTS / "vectors" / "values_early.json"
"""Written by the first version that had a `values.json`: no warnings, no `paired`, fewer rates."""
BEFORE = sorted((TESTS / "before" / "finished").glob("*/values.json"))
APPLICATION = TESTS / "before" / "finished" / "chain" / "values.json"
"""An application whose players are two nodes, without answers of their own, and a seat."""
SECTIONS = ("shapley", "leave_one_out", "leave_one_out_split", "banzhaf", "individual", "interaction")
NAMES = {"novice": -0.5, "steady": 0.5, "expert": 1.5}


@pytest.fixture(scope="module")
def task():
    return load_task("reasoning_gym:chain_sum", limit=20, seed=1)


@pytest.fixture(scope="module")
def system():
    return System("majority_vote", Pool({name: SimulatedModel(name=name, skill=s) for name, s in NAMES.items()}))


def as_json(result: SweepResult) -> dict:
    """The numbers of a result, taken from its attributes, in the form of `values.json`."""
    sections = {name: {k: asdict(v) for k, v in getattr(result, name).items()} for name in SECTIONS}
    relation = asdict(result.relation)
    cost = asdict(result.cost)
    differences = [
        {"first": d.first, "second": d.second, "value": d.value, "ci95": d.interval, "differs": d.differs}
        for d in result.differences
    ]
    plain = ("players", "n_items", "dropped_items", "method", "v", "efficiency_gap", "rates", "definitions", "warnings")
    rest = {name: getattr(result, name) for name in (*plain, "paired")}
    found = {**rest, **sections, "relation": relation, "cost": cost, "differences": differences}
    return json.loads(json.dumps(found))


def without_nothing(values: dict) -> dict:
    """What `values.json` says, without the players and sections about which it says nothing."""
    kept = {name: values[name] or {} for name in SECTIONS if name in values}
    kept = {name: {k: v for k, v in section.items() if v is not None} for name, section in kept.items()}
    values = {**values, "differences": values["differences"] or []}
    return {"warnings": [], "paired": True, **{name: {} for name in SECTIONS}, **values, **kept}


@pytest.mark.parametrize("path", [EARLY, *BEFORE], ids=lambda path: path.parent.name)
def test_the_attributes_hold_everything_that_a_recorded_file_says(path):
    values = json.loads(path.read_text(encoding="utf-8"))
    assert APPLICATION in BEFORE
    assert as_json(SweepResult.from_values(values)) == without_nothing(values)


@pytest.mark.parametrize("method", ["exact", "loo", "permutation", "shapiq:KernelSHAP"])
def test_a_result_survives_its_file_for_every_method(system, task, tmp_path, method):
    result = sweep(system, task, method=method, out=tmp_path)
    again = read_result(tmp_path)
    assert again.values == result.values == json.loads((tmp_path / "values.json").read_text(encoding="utf-8"))
    assert as_json(again) == as_json(result) == without_nothing(result.values)
    assert again.out == result.out == tmp_path
    assert again.table is None
    assert repr(again) == repr(result)


def test_a_number_has_its_name_and_its_interval(system, task):
    result = sweep(system, task, method="exact")
    low, high = result.shapley["expert"].interval
    assert [low, high] == list(result.values["shapley"]["expert"]["ci95"])
    assert result.shapley["expert"].interval.low == low < result.shapley["expert"].value < high
    assert result.v["novice+steady+expert"] - result.v[""] == pytest.approx(
        sum(e.value for e in result.shapley.values())
    )
    assert result.cost.tokens == result.cost.prompt_tokens + result.cost.completion_tokens
    assert result.relation.pairs.concordant + result.relation.pairs.inverted + result.relation.pairs.undecided == 3


def test_the_cost_counts_tokens_read_and_written():
    values = json.loads(EARLY.read_text(encoding="utf-8"))
    cost = SweepResult.from_values(values).cost
    assert cost.tokens == values["cost"]["prompt_tokens"] + values["cost"]["completion_tokens"] > 0
    assert (cost.runs, cost.seconds) == (values["cost"]["runs"], values["cost"]["seconds"])


def test_what_was_not_measured_is_empty_and_who_has_no_answers_is_missing():
    values = json.loads(APPLICATION.read_text(encoding="utf-8"))
    assert list(SweepResult.from_values(values).individual) == ["b"]
    bare = SweepResult.from_values({"players": ["a"], "n_items": 3, "method": "loo", "v": {}, "efficiency_gap": 0.0})
    assert bare.shapley == bare.banzhaf == bare.interaction == bare.rates == {}
    assert bare.differences == bare.warnings == ()
    for section in ("relation", "cost"):
        with pytest.raises(StoreError, match=f"no section '{section}'.*run the sweep again"):
            getattr(bare, section)
    assert "a" in repr(bare)


def test_keys_of_later_versions_are_kept_in_values_and_stop_nothing():
    values = json.loads(EARLY.read_text(encoding="utf-8"))
    values["shapley"]["novice"]["later"] = values["cost"]["later"] = values["relation"]["pairs"]["later"] = 1
    values["relation"]["correlations"]["shapley"]["later"] = values["later"] = 1
    result = SweepResult.from_values(values)
    assert result.shapley["novice"].value == values["shapley"]["novice"]["value"]
    assert (result.cost.runs, result.values["later"]) == (values["cost"]["runs"], 1)
    assert result.relation.pairs.undecided == values["relation"]["pairs"]["undecided"]
    assert result.relation.correlations["shapley"].pearson == values["relation"]["correlations"]["shapley"]["pearson"]


def test_the_repr_is_an_aligned_table_of_the_players():
    values = json.loads(EARLY.read_text(encoding="utf-8"))
    title, head, *rows, note = repr(SweepResult.from_values(values)).splitlines()
    assert title == "majority_vote · 12 items · 3 players · exact"
    assert head.split("  ")[0] == "member"
    assert [row.split()[0] for row in rows] == ["novice", "steady", "expert"]
    for section, column in (("shapley", "Shapley"), ("leave_one_out", "leave-one-out")):
        at = head.index(column)
        for row in rows:
            entry = values[section][row.split()[0]]
            low, high = entry["ci95"]
            assert row[at:].startswith(f"{entry['value']:.3f} [{low:.3f}, {high:.3f}]{'*' if entry['rare'] else ''}")
    assert note.startswith("* rare")


def test_the_repr_of_long_names_and_negative_values_fits_100_columns():
    values = json.loads(EARLY.read_text(encoding="utf-8"))
    low = {"value": -0.1234, "se": 0.1, "ci95": [-0.9876, -0.1111], "n_items": 9, "nonzero": 3, "rare": True}
    values["players"] = ["m" * 80]
    for section in SECTIONS:
        values[section] = {"m" * 80: low}
    lines = repr(SweepResult.from_values(values)).splitlines()
    assert max(map(len, lines)) <= 100
    assert "m" * 20 in lines[2]
    assert lines[2].endswith("-0.123 [-0.988, -0.111]*")


def test_a_folder_without_a_finished_sweep_is_named(tmp_path):
    with pytest.raises(StoreError, match=r"values.json: expected the values of a finished sweep, got none"):
        read_result(tmp_path)
    shutil.copy(EARLY, tmp_path / "values.json")
    assert read_result(str(tmp_path)).players == ("novice", "steady", "expert")
