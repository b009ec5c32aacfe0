"""Entry points of installed packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from collabsim import plugins
from collabsim.errors import PrerequisiteError


def test_the_points_of_a_group_are_known_by_name():
    protocols = plugins.registered("collabsim.protocols")
    assert protocols["debate"].value == "collabsim.graphs.debate:debate"
    assert plugins.registered("collabsim.no_such_group") == {}


BROKEN = """[collabsim.protocols]
torn = torn_package:torn
[collabsim.models]
torn = torn_package:torn
five = sound_package:five
[collabsim.kinds]
torn = torn_package:torn
[collabsim.engines]
torn = torn_package:torn
[collabsim.sections]
torn = torn_package:torn
[collabsim.commands]
torn = torn_package:torn
"""


@pytest.fixture
def torn(tmp_path):
    """The environment of a process in which a package is installed that raises when it is imported."""
    (tmp_path / "torn_package.py").write_text('raise ValueError("it is torn")\n')
    (tmp_path / "sound_package.py").write_text("def five(spec):\n    return 5\n")
    folder = tmp_path / "torn_package-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: torn-package\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(BROKEN)
    (tmp_path / "config.yaml").write_text(
        'pool: {a: "simulated:", b: "simulated:"}\nprotocol: majority_vote\n'
        'task: {source: "reasoning_gym:chain_sum", limit: 2}\n'
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}

    def call(*args):
        command = [str(Path(sys.executable).with_name("collabsim")), *args]
        return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)

    return call


@pytest.mark.parametrize(
    "args",
    [
        ("torn",),
        ("protocols", "torn"),
        ("score", "--kind", "torn"),
        ("sweep", "config.yaml", "--dry-run", "--set", "protocol=torn"),
        ("sweep", "config.yaml", "--dry-run", "--set", "pool.a=torn:x"),
    ],
)
def test_a_package_that_raises_when_imported_is_named_in_one_line(torn, args):
    ran = torn(*args)
    assert ran.returncode in (2, 3)
    assert "cannot be loaded from 'torn_package:torn': ValueError: it is torn" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_broken_package_does_not_hide_the_others(torn):
    ran = torn("protocols", "--json")
    assert ran.returncode == 0
    assert "debate" in {entry["name"] for entry in json.loads(ran.stdout)}
    assert "left out: protocol 'torn' cannot be loaded" in ran.stderr


def test_the_doctor_names_a_broken_package(torn):
    rows = " ".join(torn("doctor").stdout.split())
    assert "torn-package" in rows
    assert "it is torn" in rows


def test_a_scheme_that_makes_no_chat_model_is_refused(torn):
    ran = torn("sweep", "config.yaml", "--dry-run", "--set", "pool.a=five:x")
    assert ran.returncode == 2
    assert "expected the scheme 'five' (sound_package:five) to make a LangChain chat model, got int" in ran.stderr


@pytest.mark.parametrize("value", ["no_such_package_anywhere:NAME", "collabsim.plugins:no_such_name"])
def test_a_point_that_cannot_be_loaded_is_refused_by_name(value):
    with pytest.raises(PrerequisiteError, match=f"engine 'mine' cannot be loaded from '{value}'.*reinstall"):
        plugins.load(EntryPoint("mine", value, "collabsim.engines"), "engine")
