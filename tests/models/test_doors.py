"""Doors of the models: what is public, what it costs, and that the trainers come in by them."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from test_imports import HEAVY, ROOT, imported

TRAINERS = [pytest.param(path, id=str(path.relative_to(ROOT))) for path in sorted((ROOT / "trainers").rglob("*.py"))]
DOORS = ["collabsim.models", *(f"collabsim.models.{room}" for room in ("engines", "merging", "simulation", "weights"))]


def _folder(door: str) -> Path:
    return ROOT.joinpath(*door.split("."))


def _typed_names(door: str) -> set[str]:
    """What a type checker sees: the imports under `TYPE_CHECKING`."""
    tree = ast.parse((_folder(door) / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    return {alias.name for node in block.body for alias in node.names if node.module.startswith("collabsim.")}


@pytest.mark.parametrize("door", DOORS)
def test_every_public_name_is_there_for_people_and_for_type_checkers(door):
    package = import_module(door)
    assert set(package.__all__) == set(dir(package)) == _typed_names(door)
    public = {name: getattr(package, name) for name in package.__all__}
    assert all(value.__name__ == name for name, value in public.items() if hasattr(value, "__name__"))
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = package.no_such_name


@pytest.mark.parametrize("door", DOORS)
def test_no_public_name_is_that_of_a_module_which_would_hide_it(door):
    modules = {path.stem for path in _folder(door).iterdir()}
    assert modules.isdisjoint(import_module(door).__all__)


def test_opening_a_door_loads_nothing_heavy():
    script = f"import sys, {', '.join(DOORS)}\nprint([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def _past_the_doors(source: str) -> list[str]:
    """Imports of what is inside the models, or of a name that no door offers."""
    faults = []
    for name, _ in imported(ast.parse(source), "collabsim.trainers"):
        if name == "collabsim.models" or name.startswith("collabsim.models."):
            door, _, public = name.rpartition(".")
            if door not in DOORS or public not in import_module(door).__all__:
                faults.append(name)
    return faults


@pytest.mark.parametrize(
    "source",
    [
        "from collabsim.models.local.local_model import LocalModel",
        "def f():\n    from collabsim.models.engines.registry import find_engine",
        "from collabsim.models.weights import cache",
        "import collabsim.models.engines.engine",
    ],
)
def test_the_reader_sees_an_import_past_a_door(source):
    assert _past_the_doors(source)


@pytest.mark.parametrize("path", TRAINERS)
def test_the_trainers_use_models_through_their_doors(path):
    assert _past_the_doors(path.read_text(encoding="utf-8")) == []
