"""Kinds of engines: one that a package adds, what `engine: auto` comes to, and names that are not there."""

from __future__ import annotations

import logging
from concurrent.futures import Future
from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest
from engines import requires
from tiny_folders import CHATML, write_folder

from collabsim import Pool, System, make_item
from collabsim.errors import ConfigError, PrerequisiteError
from collabsim.models import LocalModel, resolve_model
from collabsim.models.engines import EngineKind, all_kinds, engine_names, find_engine, registry, shared_engines
from collabsim.models.engines.engine import Generation
from collabsim.models.engines.vllm_probe import VllmProbe

ITEM = make_item("How many eggs are a dozen?", "12")


class Parrot:
    """An engine that answers every prompt with the same word."""

    revision = "0"

    def __init__(self, settings):
        self.settings = settings
        self.max_model_len = settings.max_model_len or 512

    def submit(self, request):
        answer = Future()
        answer.set_result(Generation((7,), (-0.5,), "Answer: 12", "stop"))
        return answer

    def close(self):
        pass


def works():
    return SimpleNamespace(works=True, problem="")


def does_not_work():
    return SimpleNamespace(works=False, problem="no parrot here; buy one")


PARROT = EngineKind(name="parrot", title="Parrot", probe=works, start=Parrot)
EAGER = EngineKind(name="eager", title="Eager", preference=99, probe=works, start=Parrot)
ABSENT = EngineKind(name="absent", title="Absent", preference=99, probe=does_not_work, start=Parrot)


@pytest.fixture
def added(monkeypatch):
    """`added(name="attribute")`: installed packages that add engines of these names, defined in this file."""

    def add(**kinds):
        points = {
            name: EntryPoint(name, f"{__name__}:{attribute}", registry.GROUP) for name, attribute in kinds.items()
        }
        monkeypatch.setattr(registry, "registered", lambda group: points if group == registry.GROUP else {})
        monkeypatch.setattr(registry, "_told", set())

    monkeypatch.setattr(shared_engines, "_running", {})
    return add


@requires("tokenizers", "safetensors", "transformers")
async def test_an_engine_of_another_package_speaks_for_a_seat(added, tmp_path):
    added(parrot="PARROT")
    folder = write_folder(tmp_path / "tiny", template=CHATML)
    parrot = resolve_model(
        str(folder), engine="parrot", options={"dtype": "float16", "threads": 3, "max_model_len": 2048}
    )
    episode = await System("majority_vote", Pool(a=parrot)).arun(ITEM)
    assert episode.outcome == 1.0
    (engine,) = shared_engines._running.values()
    assert (engine.settings.dtype, engine.settings.threads, engine.settings.folder.name) == ("float16", 3, "tiny")
    on_transformers = resolve_model(str(folder), engine="transformers", options={"dtype": "float16"})
    assert parrot.identity != on_transformers.identity


def test_an_engine_that_hides_its_distributions_is_refused_where_they_are_needed(added):
    added(parrot="PARROT")
    with pytest.raises(ConfigError, match="'parrot'; set `engine: transformers`"):
        LocalModel(spec="org/model", engine="parrot").check_shows_logits()


@pytest.mark.parametrize(("works", "name"), [(True, "vllm"), (False, "transformers")])
def test_auto_is_vllm_where_it_works(added, monkeypatch, works, name):
    probe = VllmProbe("vllm 1", "cpu") if works else VllmProbe(None, None, "vLLM is not installed")
    monkeypatch.setattr("collabsim.models.engines.vllm_probe.probe_vllm", lambda: probe)
    added(parrot="PARROT")  # has no preference, so it is never taken unasked
    assert find_engine("auto").name == name


def test_auto_takes_an_added_engine_that_prefers_itself_and_works(added):
    added(eager="EAGER")
    assert find_engine("auto") is EAGER


def test_auto_says_once_why_it_did_not_take_a_preferred_engine(added, monkeypatch, caplog):
    monkeypatch.setattr("collabsim.models.engines.vllm_probe.probe_vllm", lambda: VllmProbe("vllm 1", "cpu"))
    added(absent="ABSENT")
    with caplog.at_level(logging.WARNING):
        assert [find_engine("auto").name for _ in range(2)] == ["vllm", "vllm"]
    assert caplog.messages == ["models run on vLLM: no parrot here; buy one"]


def test_an_engine_whose_package_is_broken_hinders_no_other(added, caplog):
    added(broken="NO_SUCH_NAME", eager="EAGER")
    with caplog.at_level(logging.WARNING):
        assert [kind.name for kind in all_kinds()] == ["eager", "vllm", "transformers"]
    assert "engine 'broken' cannot be loaded" in caplog.text
    with pytest.raises(PrerequisiteError, match="NO_SUCH_NAME"):
        find_engine("broken")


def test_an_entry_point_that_is_no_engine_is_refused(added):
    added(item="ITEM")
    with pytest.raises(PrerequisiteError, match="EngineKind of that name"):
        find_engine("item")


def test_an_unknown_engine_is_refused_with_the_nearest_name(added):
    added(parrot="PARROT")
    assert engine_names() == ["auto", "vllm", "transformers", "parrot"]
    with pytest.raises(ConfigError, match=r"model of 'a': engine: unknown engine 'parot' \(did you mean 'parrot'\?\)"):
        resolve_model("org/model", name="a", engine="parot")
    with pytest.raises(ConfigError, match="expected one of auto, vllm, transformers, parrot"):
        find_engine("sglang")


def test_the_doctor_tells_of_an_added_engine(added, monkeypatch):
    from collabsim.cli.machine import model_findings

    for kind in ("vllm_kind.VLLM", "transformers_kind.TRANSFORMERS"):
        monkeypatch.setattr(f"collabsim.models.engines.{kind}", EngineKind(**_named(kind), probe=works, start=Parrot))
    added(absent="ABSENT")
    findings = {finding.what: finding for finding in model_findings()}
    assert findings["local models on Absent"].remedy == "no parrot here; buy one"
    assert findings["local models on vLLM"].found == "works"


def _named(kind):
    return {"name": kind.partition("_")[0], "title": "vLLM" if "vllm" in kind else "transformers", "preference": 1}
