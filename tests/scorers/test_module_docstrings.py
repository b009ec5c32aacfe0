"""Docstrings of the scorers, the sandbox and the tasks: plain statements that point to files which exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "collabsim"
PATHS = sorted(path for room in ("scorers", "sandbox", "tasks") for path in (ROOT / room).rglob("*.py"))
ASKS = re.compile(r"(?:What|Where|Whether|How|Which|When|Who|Why)\b")
NAMES_FILE = re.compile(r"`([\w/]+\.py)`")


def docstring(path):
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def absent_files(text, folder):
    """Files that a text names and that are nowhere in the folder's room."""
    room = ROOT / folder.relative_to(ROOT).parts[0]
    return [name for name in NAMES_FILE.findall(text) if not list(room.rglob(name))]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_module_says_what_it_does(path):
    opening = docstring(path).partition("\n")[0]
    assert opening.endswith(".")
    assert not ASKS.match(opening)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_files_that_a_docstring_names_exist(path):
    text = "\n".join(
        ast.get_docstring(node) or ""
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
    )
    assert absent_files(text, path.parent) == []


def test_a_docstring_that_names_an_absent_file_is_seen():
    assert absent_files("see `choice_cues.py`", ROOT / "scorers" / "choice") == ["choice_cues.py"]
