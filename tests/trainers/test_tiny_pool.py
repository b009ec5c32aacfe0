"""The example that makes tiny models and compares objectives on them, in a small."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from collabsim.trainers.compare.matrix import read_matrix
from engines import requires

EXAMPLES = Path(__file__).parents[2] / "examples"


def small_config(folder):
    """`compare.yaml` with its files in `folder`, few items and one step."""
    config = yaml.safe_load(
        (EXAMPLES / "compare.yaml").read_text().replace("../runs/tiny", ".").replace("runs/tiny", str(folder))
    )
    config["task"] |= {"limit": 3, "dev": {"limit": 2, "seed": 2}}
    config["train"] |= {"steps": 1, "items_per_step": 2, "group": 2, "items": {"limit": 4, "seed": 3}}
    config["train"]["eval"]["every"] = 1
    config["compare"]["objectives"]["sft"]["items_per_step"] = 2
    config["compare"]["seeds"] = [0]
    path = folder / "compare.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    return path


def run(*arguments):
    done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def assert_page(path, values):
    """The page has a row for each setting with the gains of the comparison, and one of their means."""
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in path.read_text().splitlines() if line[:2] == "| "}
    for setting in values["settings"]:
        assert all(f"{gain['value']:.3f}" in rows[setting["name"]] for gain in setting["gain"].values())
    assert all(f"{gain['value']:.3f}" in rows["mean gain"] for gain in values["mean_gain"].values())


@pytest.mark.slow
@requires("torch", "transformers")
def test_tiny_models_are_made_and_every_objective_is_compared_in_every_protocol(tmp_path):
    config = small_config(tmp_path)
    sizes = ("--questions", 24, "--shared", 2, "--steps", 40, "--batch", 8)
    run(EXAMPLES / "tiny_pool.py", "--out", tmp_path, "--config", config, *sizes)
    places = ("--out", tmp_path / "out", "--store", tmp_path / "store.sqlite")
    values = json.loads(run("-m", "collabsim", "compare", config, *places, "--json"))
    assert len(values["settings"]) == 16
    assert values["objectives"] == ["system", "individual", "rft", "sft"]
    assert {rate for rates in values["rates"].values() for rate in rates.values()} <= {1e-4, 4e-4}
    assert (tmp_path / "out" / "compare.svg").exists()
    page = ("--name", "small", "--config", "examples/compare.yaml", "--results", tmp_path)
    run(EXAMPLES.parent / "benchmarks" / "comparison.py", tmp_path / "out", *page)
    assert_page(tmp_path / "small.md", values)
    assert "</svg>" in (tmp_path / "small_curves.svg").read_text()


@pytest.mark.parametrize(("name", "cells"), [("compare.yaml", 192), ("compare_smollm2.yaml", 4)])
def test_the_matrices_of_the_examples_are_what_they_say(name, cells):
    assert len(read_matrix(EXAMPLES / name).cells) == cells
