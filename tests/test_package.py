"""What a user gets from `pip install collabsim`: the files of the wheel, and a sweep that runs from an odd place.

The wheel is installed into an empty environment by plain pip, which follows the wheel's own dependency list; the lock only
says which versions. Extras are large, so they are taken from the environment of these tests; `wheels.py` tries one from an
index.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from wheels import QUIET, build_wheel, run, tiny_sweep, tiny_training

ROOT = Path(__file__).parents[1]
# One group: pytest-xdist then gives all of this file to one worker, and the wheel is built once.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist"))


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
    run(scripts / "python", "-m", "pip", "install", *QUIET, "-c", folder / "constraints.txt", wheel, cwd=folder)
    return scripts


@pytest.fixture(scope="module")
def complete(wheel, tmp_path_factory) -> Path:
    """The `bin` folder of an environment that holds the wheel, and all else from the environment of this test: the lock."""
    folder = tmp_path_factory.mktemp("complete")
    venv.create(folder / "venv")
    scripts = folder / "venv" / "bin"
    packages = run(scripts / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder)
    shared = [path for path in sys.path if path.endswith("site-packages")]
    (Path(packages.stdout.strip()) / "shared.pth").write_text("\n".join(shared), encoding="utf-8")
    run(scripts / "python", "-m", "pip", "install", *QUIET, "--no-deps", "--ignore-installed", wheel, cwd=folder)
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


def test_pip_takes_extras_of_the_installed_wheel_without_an_index_that_has_it(complete, project):
    """What messages say (`extras.install_command`); and what `make setup` installed has all that these extras ask for."""
    run(complete / "python", "-m", "pip", "install", *QUIET, "--no-index", "collabsim[hub,local,train]", cwd=project)


def test_the_wheel_sweeps_and_trains_local_models(complete, project):
    where = run(
        complete / "python", "-c", "import collabsim; print(collabsim.__file__)", cwd=project, PYTHONSAFEPATH="1"
    )
    assert Path(where.stdout).is_relative_to(complete.parent)
    tiny_sweep(complete, project, "transformers")
    trained = tiny_training(complete, project)
    assert list((trained / "tensorboard").iterdir())
