"""A folder in which a reader works, and the command line inside this process."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pages import ROOT
from tiny_folders import CHATML, write_folder

from collabsim.cli import main

READERS_MODULES = ("my_protocol", "my_judge", "my_vote", "assistant")


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, with the examples and nothing else of this project."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "160")
    for name in ("COLLABSIM_STORE", "PYTHONPATH", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    yield tmp_path
    for name in READERS_MODULES:
        sys.modules.pop(name, None)


@pytest.fixture
def my_model(workspace: Path) -> Path:
    """The folder `my-model` of the training guide: a model of a few kilobytes."""
    return write_folder(workspace / "my-model", template=CHATML, adds_bos=False)


@pytest.fixture
def collabsim(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """`collabsim(*args)`: standard output of the command in this process, which must succeed."""

    def call(*args: str, typed: bytes | None = None) -> str:
        monkeypatch.setattr(sys, "argv", ["collabsim", *args])
        monkeypatch.setattr(sys, "path", list(sys.path))
        if typed is not None:
            monkeypatch.setattr(sys, "stdin", _Typed(typed))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert not ended.value.code, f"{args}: exit code {ended.value.code}\n{err}"
        return out

    return call


class _Typed:
    """Standard input as far as the command line reads it: lines of bytes."""

    def __init__(self, text: bytes) -> None:
        self.buffer = text.splitlines(keepends=True)
