"""What a user gets from `pip install collabsim`: the files of the wheel, and a sweep that runs from an odd place.

The wheel is built from a copy of the sources, so that a stale `build/` cannot end up in it, and installed into an empty
environment by plain pip, which follows the wheel's own dependency list; the lock only says which versions.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# One group: pytest-xdist then gives all of this file to one worker, and the wheel is built once.
pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command without this project's own environment; a failure shows all that it printed."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV", "PYTEST"))
    }
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=kept | variables, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in ("collabsim", "graphs", "trainers", "tests", "benchmarks", "examples"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, source, cwd=out)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The `bin` folder of an environment that holds the wheel and what its own metadata asks for."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder / "venv", with_pip=True)
    pins = re.findall(
        r"^([a-z0-9].*?) \\$", (ROOT / "requirements" / "lock.txt").read_text(encoding="utf-8"), re.MULTILINE
    )
    (folder / "constraints.txt").write_text("\n".join(pins), encoding="utf-8")
    scripts = folder / "venv" / "bin"
    flags = ["--quiet", "--no-compile", "--disable-pip-version-check", "--no-input", "-c", folder / "constraints.txt"]
    run(scripts / "python", "-m", "pip", "install", *flags, wheel, cwd=folder)
    return scripts


@pytest.fixture
def project(tmp_path) -> Path:
    """A user's folder that has packages called `graphs` and `trainers` of its own, which must stay untouched."""
    for name in ("graphs", "trainers"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('a package of the user was imported')\n")
    shutil.copy(ROOT / "examples" / "quickstart.yaml", tmp_path)
    return tmp_path


def test_the_wheel_holds_every_source_file_and_the_data_beside_them(wheel):
    folders = {"collabsim": "collabsim", "graphs": "collabsim/graphs", "trainers": "collabsim/trainers"}
    expected = {
        f"{place}/{path.relative_to(ROOT / folder).as_posix()}"
        for folder, place in folders.items()
        for path in (ROOT / folder).rglob("*.py")
    }
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"collabsim/graphs/debate.py", "collabsim/trainers/__init__.py"} <= expected
    assert expected | {"collabsim/py.typed", "collabsim/graphs/langgraph.json"} <= names


def test_the_wheel_puts_nothing_beside_the_package(wheel):
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"collabsim"}


def test_the_wheel_carries_its_licence(wheel):
    (licence,) = [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith("licenses/LICENSE")]
    assert "Apache License" in zipfile.ZipFile(wheel).read(licence).decode()


def test_the_quickstart_runs_in_an_empty_environment_beside_folders_of_the_same_names(installed, project):
    python, store = installed / "python", str(project / "cache")
    shadowed = subprocess.run([python, "-c", "import graphs"], cwd=project, capture_output=True, text=True)
    assert "a package of the user was imported" in shadowed.stderr

    # `-m` puts the user's folder first on the module path; the script does not.
    sweep = ("sweep", "quickstart.yaml", "--out", "run")
    run(python, "-m", "collabsim", *sweep, cwd=project, XDG_CACHE_HOME=store)
    values = json.loads((project / "run" / "values.json").read_text(encoding="utf-8"))
    assert len(values["players"]) == 4
    assert len(values["v"]) == 2 ** len(values["players"])
    assert set(values["shapley"]) == set(values["players"])
    assert abs(values["efficiency_gap"]) < 1e-9
    assert values["cost"]["generated"] > 0

    again = run(installed / "collabsim", *sweep, "--json", cwd=project, XDG_CACHE_HOME=store)
    assert json.loads(again.stdout)["shapley"] == values["shapley"]


def test_the_protocols_are_found_in_an_empty_environment(installed, project):
    listed = run(installed / "collabsim", "protocols", "--json", cwd=project).stdout
    for name in ("debate", "majority_vote", "mixture_of_agents", "prompt_router"):
        assert f'"{name}"' in listed


def test_the_dependency_list_of_the_wheel_is_met_by_the_lock(installed, project):
    assert "No broken requirements" in run(installed / "python", "-m", "pip", "check", cwd=project).stdout
