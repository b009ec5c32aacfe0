"""`collabsim train` and `compare` from a config file to the last line printed."""

import json
from pathlib import Path

import pytest
import yaml
from collabsim.trainers.compare.comparison import COMPARE_FILE, PICTURE_FILE
from router_world import router_folder
from typer.testing import CliRunner

from collabsim.cli.app import app
from collabsim.errors import ConfigError
from collabsim.run_folder import read_json


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return router_folder(tmp_path_factory.mktemp("command") / "model")


def config_of(model, folder, **sections):
    """A vote of a tiny model that says 1 or 2 with two simulated partners, and where everything goes."""
    rows = [{"question": f"heads or tails? {k}", "answer": str(1 + k % 2)} for k in range(24)]
    (folder / "coins.jsonl").write_text("\n".join(map(json.dumps, rows)))
    sampling = {"temperature": 1.0, "max_tokens": 4}
    local = {"model": str(model), "engine": "transformers", "options": {"dtype": "float32"}, "sampling": sampling}
    config = {
        "pool": {"me": local, "a": {"model": "simulated:"}, "b": {"model": "simulated:"}},
        "protocol": {"name": "majority_vote"},
        "task": {"source": "jsonl:coins.jsonl", "limit": 6, "dev": {"limit": 4}, "prompt": "{question}"},
        "train": {
            "seat": "me",
            "group": 2,
            "items_per_step": 2,
            "steps": 2,
            "lr": 1e-3,
            "items": {"limit": 8},
            "eval": {"every": 1, "values": "loo"},
        },
        "out": str(folder / "run"),
        "store": str(folder / "store.sqlite"),
    }
    path = folder / "train.yaml"
    path.write_text(yaml.safe_dump({**config, **sections}, sort_keys=False))
    return path


def collabsim(*args):
    done = CliRunner().invoke(app, [str(arg) for arg in args])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def test_train_prints_what_came_of_it_and_the_same_again_from_the_folder(model, tmp_path):
    path = config_of(model, tmp_path)
    shown = collabsim("train", path).stdout
    assert "system · seat me · 2 steps" in shown
    assert "worth of me" in shown
    again = json.loads(collabsim("train", path, "--json").stdout)
    assert again == read_json(tmp_path / "run" / "result.json")
    assert again["after"]["compositional"].keys() == {"me", "a", "b"}
    assert again["after"]["individual"] is not None


def test_compare_trains_every_cell_and_draws_the_table(model, tmp_path):
    compare = {
        "objectives": ["system", "sft"],
        "protocols": {"vote": {}, "routed": {"protocol": {"name": "prompt_router", "roles": {"router": "a"}}}},
        "tasks": {"coins": {}},
    }
    train = {
        "seat": "me",
        "group": 2,
        "items_per_step": 2,
        "steps": 1,
        "items": {"limit": 8},
        "eval": {"values": "none"},
    }
    path = config_of(model, tmp_path, compare=compare, train=train)
    shown = collabsim("compare", path).stdout
    assert "mean gain" in shown
    values = read_json(tmp_path / "run" / COMPARE_FILE)
    assert [setting["name"] for setting in values["settings"]] == ["vote · coins", "routed · coins"]
    assert sum(entry["point"] for entry in values["wins"].values()) >= 2
    assert (tmp_path / "run" / PICTURE_FILE).read_text().startswith("<svg")
    assert json.loads(collabsim("compare", path, "--json").stdout) == values


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("train=null", "expected a section `train:`"),
        ("train.seat=you", "no seat 'you'"),
        ("train.seat=a", "expected a local model"),
        ("train.sed=1", "did you mean 'seed'"),
        ("pool.me.sampling.temperature=0", "full distribution"),
        ("task.limit=23", "too few|leaves no item"),
    ],
)
def test_what_cannot_be_meant_is_said_before_a_model_is_loaded(model, tmp_path, change, message):
    from collabsim.errors import CollabsimError

    with pytest.raises(CollabsimError, match=message):
        collabsim("train", config_of(model, tmp_path), "--set", change)
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_compare_without_its_section_says_what_to_add(model, tmp_path):
    with pytest.raises(ConfigError, match="expected a section `compare:`"):
        collabsim("compare", config_of(model, tmp_path))


def test_the_example_trains_a_seat_and_sweeps_the_result_here_with_a_tiny_model_in_place_of_the_real_one(
    model, tmp_path
):
    example = Path(__file__).parents[2] / "examples" / "train_vote.yaml"
    tiny = {f"pool.{seat}.model": str(model) for seat in ("learner", "shown", "gemma3")}
    tiny |= {f"pool.{seat}.engine": "transformers" for seat in ("learner", "shown", "gemma3")}
    less = {"task.limit": 4, "task.dev.limit": 2, "train.items.limit": 4, "train.steps": 1, "train.items_per_step": 2}
    changes = [part for key, value in {**tiny, **less}.items() for part in ("--set", f"{key}={value}")]
    places = ("--out", tmp_path / "run", "--store", tmp_path / "store.sqlite")
    values = json.loads(collabsim("train", example, *changes, *places, "--json").stdout)
    assert values["before"]["compositional"].keys() == {"learner", "shown", "gemma3"}
    assert (tmp_path / "run" / "policy" / "config.json").exists()
    after = Path(__file__).parents[2] / "examples" / "after.yaml"
    models = {"trained": tmp_path / "run" / "policy", "untrained": model, "shown": model}
    tiny = {f"pool.{seat}.model": str(folder) for seat, folder in models.items()}
    tiny |= {f"pool.{seat}.engine": "transformers" for seat in models}
    changes = [part for key, value in {**tiny, "task.limit": 3}.items() for part in ("--set", f"{key}={value}")]
    swept = collabsim(
        "sweep", after, *changes, "--out", tmp_path / "after", "--store", tmp_path / "store.sqlite", "--json"
    )
    assert json.loads(swept.stdout)["shapley"].keys() == set(models)
