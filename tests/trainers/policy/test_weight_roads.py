"""Roads by which weights reach engines: those that are there, one that a package adds, and engines that have none."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import EntryPoint

import pytest
from collabsim.trainers.policy import weight_roads
from collabsim.trainers.policy.policy import Policy
from collabsim.trainers.policy.weight_roads import Road, road_named
from engines import requires

from collabsim.errors import ConfigError
from collabsim.models.engines import transformers_kind


class Copies:
    """A transfer that notes what it was asked to send."""

    def __init__(self, engine, workers):
        self.engine = engine
        self.sent = []

    def push(self, learner, revision):
        self.sent.append(revision)
        self.engine.renew(revision)

    def close(self):
        pass


BY_PIGEON = Road(Copies, shares_weights=True)


def test_the_roads_of_the_engines_here_are_there():
    assert road_named("shared").shares_weights
    assert road_named("nccl").own_gpu
    assert not road_named("reload").shares_weights


def test_an_unknown_road_is_refused_with_the_nearest_name():
    with pytest.raises(ConfigError, match=r"no road 'ncl' for weights \(did you mean 'nccl'\?\)"):
        road_named("ncl")


@pytest.fixture
def folder(tmp_path):
    from models.tiny_transformers import tiny_model

    return tiny_model(tmp_path / "tiny")


@requires("torch", "transformers", "safetensors", "tokenizers")
def test_a_package_adds_a_road_for_its_engine(folder, monkeypatch):
    points = {"pigeon": EntryPoint("pigeon", f"{__name__}:BY_PIGEON", weight_roads.GROUP)}
    monkeypatch.setattr(weight_roads, "registered", lambda group: points if group == weight_roads.GROUP else {})
    kind = replace(transformers_kind.TRANSFORMERS, weight_road=lambda spec, workers, asked: "pigeon")
    monkeypatch.setattr(transformers_kind, "TRANSFORMERS", kind)
    with Policy.open(folder, engine="transformers", dtype="float32", chat_format="plain") as policy:
        policy.push()
        assert (policy._transfer.sent, policy.revision, policy.shares_weights) == (["1"], "1", True)


@requires("torch", "transformers", "safetensors", "tokenizers")
def test_an_engine_without_a_road_cannot_speak_for_a_learner(folder, monkeypatch):
    kind = replace(transformers_kind.TRANSFORMERS, weight_road=None)
    monkeypatch.setattr(transformers_kind, "TRANSFORMERS", kind)
    with pytest.raises(ConfigError, match="'transformers' cannot speak for a model that learns"):
        Policy.open(folder, engine="transformers", chat_format="plain")
