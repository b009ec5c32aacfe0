"""`py.typed` holds: `mypy --strict` finds the types of an ordinary wheel, in examples, in the documents and outside.

The wheel lies in an environment of its own, beside a path to the packages of this one. The settings for mypy in
`pyproject.toml` play no part. For the examples and documents, packages that have no types worth the name (torch and its
kin) are left out; for the user's project nothing is.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from importlib import import_module
from pathlib import Path

import pytest
from test_package import run, wheel  # noqa: F401 (a fixture)

ROOT = Path(__file__).parents[1]
PROJECT = ROOT / "tests" / "vectors" / "user_project.py"
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMED = re.compile(r"# (\S+\.py)\n")
UNTYPED = "torch.*,transformers.*,tokenizers.*,peft.*,datasets.*,safetensors.*"


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory) -> Path:  # noqa: F811
    """The interpreter of an environment that holds the wheel, and sees the packages of this one."""
    folder = tmp_path_factory.mktemp("typed")
    venv.create(folder, with_pip=False)
    (packages,) = folder.glob("lib/python*/site-packages")
    zipfile.ZipFile(wheel).extractall(packages)
    # Paths only: what `.pth` files there say, such as where this checkout is, is not followed.
    others = dict.fromkeys(
        [sysconfig.get_path("purelib"), *(path for path in sys.path if path.endswith("site-packages"))]
    )
    (packages / "others.pth").write_text("\n".join(others), encoding="utf-8")
    found = run(folder / "bin" / "python", "-c", "import collabsim; print(collabsim.__file__)", cwd=folder).stdout
    assert Path(found.strip()).is_relative_to(packages)
    return folder / "bin" / "python"


def complaints(python: Path, folder: Path, config: str = "") -> list[str]:
    """What `mypy --strict` says about the files in a folder."""
    (folder / "mypy.ini").write_text(f"[mypy]\n{config}", encoding="utf-8")
    files = sorted(path.name for path in folder.glob("*.py"))
    assert files
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(python), *files]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if ": error:" in line]


def documented(folder: Path) -> None:
    """The Python of every document as a file: its blocks one after another, as a reader runs them."""
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        blocks = [match[1] for match in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]
        for block in blocks:
            if named := NAMED.match(block):
                (folder / Path(named[1]).name).write_text(block, encoding="utf-8")
        if blocks:
            (folder / f"blocks_of_{document.stem.replace('-', '_')}.py").write_text("\n".join(blocks), encoding="utf-8")


@pytest.mark.slow
def test_a_project_outside_the_checkout_sees_all_types_and_its_mistakes_are_errors(python, tmp_path):
    shutil.copy(PROJECT, tmp_path)
    assert complaints(python, tmp_path) == []


@pytest.mark.slow
def test_the_examples_and_the_blocks_of_the_documents_are_typed(python, tmp_path):
    documented(tmp_path)
    assert (tmp_path / "blocks_of_README.py").exists()
    for example in (ROOT / "examples").glob("*.py"):
        shutil.copy(example, tmp_path)
    assert complaints(python, tmp_path, f"[mypy-{UNTYPED}]\nfollow_imports = skip\n") == []


@pytest.mark.parametrize("package", ["collabsim", "collabsim.trainers"])
def test_the_project_uses_every_public_name(package):
    names = {name for name in import_module(package).__all__ if name != "__version__"}
    tree = ast.parse(PROJECT.read_text(encoding="utf-8"))
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == package]
    imported = {alias.name for node in froms for alias in node.names}
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert imported == names
    assert names - used == set()


@pytest.mark.parametrize("package", ["collabsim", "collabsim.trainers"])
def test_every_public_name_is_listed_once_and_loads_from_its_home(package):
    module = import_module(package)
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    typed = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    homes = set(module.__dir__())
    assert sorted(set(module.__all__)) == sorted(module.__all__)
    assert set(module.__all__) == homes
    assert homes <= typed, "a name that only loads at run time has no type"
    for name in module.__all__:
        assert getattr(module, name) is not None
