"""Members that cannot do together what a protocol wants are refused while a sweep is planned, without their weights."""

import json

import pytest
import yaml
from engines import requires
from models.tiny_transformers import tiny_model
from scripted import Scripted

from collabsim import Pool, SimulatedModel, System, make_item
from collabsim.cli import sweep_command as command
from collabsim.coalitions.sweep import plan_sweep
from collabsim.errors import ConfigError, ProtocolError
from collabsim.models.local.local_model import LocalModel
from collabsim.tasks import Task

pytestmark = requires("torch", "transformers", "peft", "tokenizers", "safetensors")

TASK = Task("sums", (make_item("2 + 3?", "5"),), dev=(make_item("3 + 3?", "6"),))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("models")
    made = {name: tiny_model(place / name, seed=seed) for seed, name in enumerate(("one", "two", "base", "strange"))}
    file = made["strange"] / "tokenizer.json"
    content = json.loads(file.read_text())
    table = content["model"]["vocab"]
    table["a"], table["b"] = table["b"], table["a"]
    file.write_text(json.dumps(content))
    return made | {"gemma": tiny_model(place / "gemma", kind="gemma3_text", seed=4)}


@pytest.fixture
def planned(folders, tmp_path, monkeypatch):
    """Plan a sweep of a protocol over tiny models; loading one fails the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("collabsim.models.weights.torch_loading.load", lambda *_: pytest.fail("weights were loaded"))

    def plan(protocol, *names, base=None, engine="transformers", **others):
        def local(name):
            return LocalModel(spec=str(folders[name]), engine=engine, dtype="float32")

        pool = Pool({**{name: local(name) for name in names}, **others})
        helpers = Pool({} if base is None else {"base": local(base)})
        return plan_sweep(System(protocol, pool, helpers=helpers), TASK)

    return plan


@pytest.mark.parametrize("protocol", ["logit_fusion", "contrastive", "nudging"])
def test_ensembles_of_one_vocabulary_are_planned_and_others_refused_by_name(planned, protocol):
    assert planned(protocol, "one", "two")
    with pytest.raises(ProtocolError, match=r"'one' and 'strange'.*one vocabulary, but in one '[ab]' is id"):
        planned(protocol, "one", "strange")


@pytest.mark.parametrize("protocol", ["soup", "ties", "greedy_soup"])
def test_merges_of_one_architecture_are_planned_and_others_refused_by_name(planned, protocol):
    assert planned(protocol, "one", "two", base="base")
    with pytest.raises(ConfigError, match=r"expected models of one architecture, but .* in base and .* in gemma"):
        planned(protocol, "one", "gemma", base="base")
    with pytest.raises(ConfigError, match=r"expected models of one vocabulary, but token '[ab]' is"):
        planned(protocol, "one", "strange", base="base")


def test_a_merge_without_its_base_or_of_other_kinds_of_models_is_refused(planned):
    with pytest.raises(ProtocolError, match="helper named 'base'"):
        planned("soup", "one", "two")
    with pytest.raises(ProtocolError, match="models whose weights can be merged"):
        planned("soup", "one", base="base", sim=SimulatedModel(name="sim"))


def test_models_that_show_no_distribution_are_refused(planned):
    with pytest.raises(ProtocolError, match=r"next-token distribution.*got a Scripted"):
        planned("logit_fusion", "one", mine=Scripted("mine", "5"))
    with pytest.raises(ConfigError, match="set `engine: transformers` on every seat"):
        planned("logit_fusion", "one", "two", engine="vllm")


def test_other_protocols_and_single_members_take_what_they_are_given(planned):
    assert planned("debate", "one", "gemma", "strange")
    assert planned("soup", "gemma", base="base")
    assert planned("logit_fusion", "one", engine="vllm")
    assert plan_sweep(System("logit_fusion", {k: SimulatedModel(name=k) for k in "ab"}), TASK)


def test_a_dry_run_refuses_what_the_sweep_would(folders, tmp_path):
    seats = {name: {"model": str(folders[name]), "engine": "transformers"} for name in ("one", "strange")}
    (tmp_path / "rows.jsonl").write_text('{"question": "2 + 3?", "answer": "5"}')
    config = {"pool": seats, "protocol": {"name": "logit_fusion"}, "task": {"source": "jsonl:rows.jsonl"}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    with pytest.raises(ProtocolError, match="members of one model family"):
        command.dry_run(tmp_path / "config.yaml", [], as_json=True)
