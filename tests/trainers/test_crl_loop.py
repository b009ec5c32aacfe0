"""The training loop in one flat file, `examples/crl_loop.py`: short, on public names only, and it trains."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import collabsim.trainers
import pytest
from engines import requires
from router_world import start_folder

import collabsim

SCRIPT = Path(__file__).parents[2] / "examples" / "crl_loop.py"
PUBLIC = {"collabsim": collabsim.__all__, "collabsim.trainers": collabsim.trainers.__all__}


def test_it_is_short_enough_to_read_at_one_go():
    assert len(SCRIPT.read_text(encoding="utf-8").splitlines()) < 150


def test_it_uses_public_names_only():
    found = [
        node for node in ast.walk(ast.parse(SCRIPT.read_text(encoding="utf-8"))) if isinstance(node, ast.ImportFrom)
    ]
    ours = [node for node in found if (node.module or "").startswith("collabsim")]
    assert ours
    assert [name.name for node in ours for name in node.names if name.name not in PUBLIC.get(node.module, ())] == []


@pytest.fixture(scope="module")
def learner(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("learner")
    start_folder(folder, seed=0)
    return folder


@requires("torch", "transformers")
def test_it_trains_a_model_and_measures_the_system_before_and_after(learner):
    flags = ("--model", learner, "--steps", "3", "--tests", "8", "--lr", "1e-2")
    done = subprocess.run([sys.executable, SCRIPT, *flags], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    steps = [re.fullmatch(r"step +(\d+)  outcome ([01]\.\d{3})  informative (\d+) of 48", line) for line in lines[:-1]]
    assert all(steps)
    assert [int(step[1]) for step in steps] == [1, 2, 3]
    # A model that says anything falls back to one expert: right on half of the items in every group.
    assert re.fullmatch(r"system on 8 test items: [01]\.\d{3} before, [01]\.\d{3} after", lines[-1])
