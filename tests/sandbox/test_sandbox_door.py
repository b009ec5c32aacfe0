"""The sandbox has one door, and going through it loads nothing that a worker does not need."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from test_imports import imported, python_files, within

from collabsim import sandbox

FOLDER = Path(sandbox.__file__).parent


def behind_the_door(source, package):
    """Imports of modules inside the sandbox."""
    names = (name for name, _ in imported(ast.parse(source), package))
    return [
        name for name in names if any(within(name, f"collabsim.sandbox.{path.stem}") for path in FOLDER.glob("*.py"))
    ]


def test_the_reader_sees_an_import_from_behind_the_door():
    assert behind_the_door("from collabsim.sandbox.report import Report", "collabsim.scorers.code")
    assert behind_the_door("from collabsim.sandbox import floor", "collabsim.cli")
    assert behind_the_door("from collabsim.sandbox import Report", "collabsim.cli") == []


def test_other_rooms_import_from_the_door_only():
    outside = [(path, package) for path, package in python_files() if FOLDER not in path.parents]
    assert len(outside) > 200
    assert [path for path, package in outside if behind_the_door(path.read_text(encoding="utf-8"), package)] == []


@pytest.mark.parametrize("name", sandbox.__all__)
def test_every_name_of_the_door_is_there(name):
    assert getattr(sandbox, name).__name__ == name


def test_a_name_that_the_door_does_not_have_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Sandbocks'"):
        sandbox.Sandbocks  # noqa: B018


def test_a_worker_imports_the_folder_without_the_rest_of_collabsim():
    code = (
        f"import sys; sys.path.insert(0, {str(FOLDER.parent)!r}); import sandbox; "
        "print([m for m in sys.modules if m.startswith(('collabsim', 'sandbox.'))])"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_modules_of_the_sandbox_that_a_worker_loads_name_each_other_relatively():
    for path in FOLDER.glob("*.py"):
        absolute = [name for name, relative in imported(ast.parse(path.read_text()), "sandbox") if not relative]
        named = [name for name in absolute if within(name, "collabsim")]
        assert named == (["collabsim.errors.PrerequisiteError"] if path.name == "floor.py" else []), path.name
