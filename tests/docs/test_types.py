"""The Python of the documentation passes `mypy --strict`, as a reader's own project would check it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pages import PAGES, ROOT, of, read

pytestmark = pytest.mark.slow
TUTORIAL = ROOT / "examples" / "tutorial.ipynb"


def programs() -> dict[str, str]:
    """File name -> program: the named blocks of all pages, each page's other blocks in their order, the tutorial."""
    found: dict[str, str] = {}
    for page in PAGES:
        named = [block for block in of(read(page), "python") if block.file]
        found |= {block.file: block.text for block in named}
        rest = [block.text for block in of(read(page), "python") if not block.file]
        if rest:
            found[f"page_{page.stem.lower().replace('-', '_')}.py"] = "\n\n".join(rest)
    cells = json.loads(read(TUTORIAL))["cells"]
    found["tutorial.py"] = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    return found


def installed(folder: Path) -> Path:
    """The package as a wheel has it: one folder, where the checkout has three."""
    package = folder / "installed" / "collabsim"
    package.mkdir(parents=True)
    parts = [*(ROOT / "collabsim").iterdir(), ROOT / "graphs", ROOT / "trainers"]
    for part in parts:
        (package / part.name).symlink_to(part)
    return package.parent


def test_the_python_of_the_pages_and_the_tutorial_is_typed(tmp_path):
    for name, text in programs().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    settings = [
        "--strict",
        "--config-file",
        str(ROOT / "pyproject.toml"),
        "--allow-redefinition",
        "--follow-imports=silent",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *settings, *sorted(programs())],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(installed(tmp_path))},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_page_with_python_is_checked():
    assert {"my_protocol.py", "my_judge.py", "my_vote.py", "page_sweeps.py", "page_training.py"} <= set(programs())
