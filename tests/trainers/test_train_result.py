"""The typed result of a training, against the `result.json` that it stands for."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from collabsim.trainers import TrainResult

RECORDED = Path(__file__).parents[1] / "before" / "expected" / "train" / "result.json"


@pytest.fixture
def values() -> dict:
    return json.loads(RECORDED.read_text(encoding="utf-8"))


def plain(record) -> dict | None:
    return None if record is None else json.loads(json.dumps(asdict(record)))


def test_the_attributes_hold_what_the_file_says(values):
    result = TrainResult(values, None)
    assert (result.objective, result.seat, result.steps) == (values["objective"], values["seat"], values["steps"])
    assert result.chosen_step == values["chosen"]["step"]
    assert plain(result.before) == values["before"]
    assert plain(result.after) == values["after"]
    assert plain(result.gain) == values["gain"]
    assert plain(result.cost) == values["cost"]
    assert result.gain.system.interval.low == values["gain"]["system"]["ci95"][0]


def test_what_was_not_measured_is_none(values):
    for key in ("before", "after", "gain", "per_item"):
        del values[key]
    result = TrainResult(values, None)
    assert (result.before, result.after, result.gain) == (None, None, None)
    assert result.cost.learner_tokens == values["cost"]["learner_tokens"]


def test_a_helper_has_no_answers_of_its_own_and_values_may_be_left_out(values):
    values["before"]["individual"] = values["gain"]["individual"] = values["before"]["compositional"] = None
    result = TrainResult(values, None)
    assert result.before.individual is result.gain.individual is None
    assert result.before.compositional == {}
