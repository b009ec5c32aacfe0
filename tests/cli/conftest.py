"""A folder to work in, a store beside it, and the command line inside this process."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from importlib import invalidate_caches
from pathlib import Path
from typing import Any

import pytest
from command_line import N_ITEMS, Ran, write_config

from collabsim.cli import main


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with `config.yaml` and its `items.jsonl`; the generation store lies outside of it."""
    folder = tmp_path / "work"
    folder.mkdir()
    (tmp_path / "store").mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLLABSIM_STORE", str(tmp_path / "store" / "generations.sqlite"))
    monkeypatch.setenv("COLUMNS", "160")
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(variable, raising=False)
    sums = [{"question": f"What is {k} plus {k + 3}?", "answer": str(2 * k + 3)} for k in range(N_ITEMS)]
    (folder / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in sums))
    write_config(folder / "config.yaml")
    return folder


@pytest.fixture
def collabsim(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """`collabsim(*args)`: the command in this process, as the installed script calls it."""

    def call(*args: Any) -> Ran:
        monkeypatch.setattr(sys, "argv", ["collabsim", *map(str, args)])
        monkeypatch.setattr(sys, "path", list(sys.path))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return Ran(int(ended.value.code or 0), out, err)

    return call


@pytest.fixture
def module(work: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """`module(name, source)`: a Python module in the current folder, forgotten after the test."""

    def write(name: str, source: str) -> None:
        (work / f"{name}.py").write_text(source)
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        monkeypatch.setitem(sys.modules, name, None)  # remembers that it is not there, which is restored in the end
        del sys.modules[name]
        invalidate_caches()

    return write


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the finished run of the unchanged config lies; made by the first test that needs it."""
    return tmp_path_factory.mktemp("finished") / "run"


@pytest.fixture
def used(collabsim: Callable[..., Ran], work: Path, finished_run: Path) -> Path:
    """`run`: a copy of a finished run in the current folder."""
    if not finished_run.exists():
        assert collabsim("sweep", "config.yaml", "--out", finished_run).code == 0
    return shutil.copytree(finished_run, work / "run")


@pytest.fixture
def swept(collabsim: Callable[..., Ran]) -> Ran:
    """A sweep that is done, with its result in the folder `run`."""
    ran = collabsim("sweep", "config.yaml", "--out", "run")
    assert ran.code == 0
    return ran
