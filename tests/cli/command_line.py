"""Calls of the command line, and what they leave behind."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import yaml

N_ITEMS = 6
CONFIG: dict[str, Any] = {
    "pool": {
        "novice": {"model": "simulated:", "options": {"skill": -0.5, "conformity": 0.5}},
        "steady": {"model": "simulated:", "options": {"skill": 0.5}},
        "expert": {"model": "simulated:", "options": {"skill": 1.5}},
    },
    "protocol": {"name": "majority_vote"},
    "task": {"source": "jsonl:items.jsonl"},
    "sweep": {"method": "exact"},
}
"""A config that every command takes; tests change what they are about."""
SEATS = tuple(CONFIG["pool"])
PROTOCOLS = ("debate", "majority_vote", "mixture_of_agents", "prompt_router")


class Ran(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def message(self) -> str:
        """The one line of an error. Fails when there is more, less, or anything on standard output."""
        lines = self.err.splitlines()
        assert len(lines) == 1, f"expected one line on standard error, got:\n{self.err}"
        assert lines[0].startswith("collabsim: "), lines[0]
        assert self.out == ""
        return lines[0].removeprefix("collabsim: ")


def write_config(path: Path, config: Mapping[str, Any] = CONFIG, **sections: Any) -> Path:
    """A config file with some sections replaced."""
    path.write_text(yaml.safe_dump({**config, **sections}, sort_keys=False), encoding="utf-8")
    return path


def in_a_process(*args: Any, **how: Any) -> Ran:
    """The command in a process of its own."""
    done = subprocess.run(command(*args), capture_output=True, text=True, **{"timeout": 120, **how})
    return Ran(done.returncode, done.stdout, done.stderr)


def command(*args: Any) -> list[str]:
    return [sys.executable, "-m", "collabsim", *map(str, args)]


def contents(folder: Path) -> dict[str, bytes | None]:
    """Every file below a folder with its bytes, every folder with None."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query on a SQLite file; none when there is no such file, or nothing at all in it."""
    if not path.exists():
        return []
    with closing(sqlite3.connect(path)) as file:
        empty = not file.execute("SELECT * FROM sqlite_master").fetchall()
        return [] if empty else file.execute(query).fetchall()


def kept_generations(store: Path | str | None = None) -> dict[str, bytes]:
    """Every generation in a store file, by key; without a path in the store of this test."""
    return dict(rows(Path(store or os.environ["COLLABSIM_STORE"]), "SELECT key, reply FROM generations"))


def without_time(values: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a `values.json` that two sessions of one sweep must share to the last digit."""
    return {**values, "cost": {**values["cost"], "seconds": None}}
