"""Run folders: the check that a resumed run is the same one, and files that are written whole or not at all.

In: a path and the identity of a run (plain JSON). Out: a folder whose `run.json` holds that identity, beside the files
named below. A folder of a different run is refused with the keys that differ; no partial write ever replaces a good file.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from collabsim.errors import ConfigError, StoreError
from collabsim.paths import user_path

RUN_FILE = "run.json"
VALUES_FILE = "values.json"
FITTED_FILE = "fitted.json"
OUTCOMES_FILE = "outcomes.sqlite"
PACKAGES = ("collabsim", "langgraph", "langchain-core", "numpy")


class RunFolder:
    """One run's folder. Nothing is written before `open`."""

    def __init__(self, path: Path | str, identity: Mapping[str, Any]) -> None:
        """Raises `ConfigError` when the folder cannot be meant, or holds a different run or foreign files."""
        if path == "":
            raise ConfigError("out: expected a path, got an empty text; write '.' for the current folder")
        self.path = user_path(path, "out")
        self._identity = json.loads(json.dumps(identity))
        earlier = self._check_same_run() or {}
        self._started = earlier.get("started", _now())
        self.seconds = float(earlier.get("seconds", 0.0))
        """Time of all finished sessions; that of a killed session is not counted."""

    def open(self) -> None:
        """Make the folder, or reopen it. Raises `StoreError` when it cannot be written."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"cannot make the run folder {self.path}: {error.strerror}; name another with --out"
            ) from None
        self.note({})

    def _check_same_run(self) -> dict[str, Any] | None:
        """The record of the run in this folder; None for a new folder."""
        if not self.path.is_dir():
            return None
        record = read_json(self.path / RUN_FILE)
        if record is None:
            # A session that was killed while it wrote its very first file leaves a draft of it.
            if any(not file.match(_draft_name(RUN_FILE, "*")) for file in self.path.iterdir()):
                raise ConfigError(
                    f"{self.path} holds other files and no {RUN_FILE}; name an empty or new folder with --out"
                )
            return None
        if not isinstance(record, dict) or not {"identity", "started"} <= record.keys():
            raise ConfigError(
                f"{self.path / RUN_FILE} was not written by a sweep; name an empty or new folder with --out"
            )
        differing = sorted(differing_keys(record["identity"], self._identity))
        if differing:
            shown = ", ".join(differing[:8]) + (", ..." if len(differing) > 8 else "")
            raise ConfigError(
                f"{self.path} holds a run with another config; differing keys: {shown}. "
                "Name another folder with --out, or restore these keys to resume"
            )
        return record

    def note(self, facts: Mapping[str, Any]) -> None:
        """Write `run.json`: identity, versions, times, and `facts` about the latest session."""
        record = {
            "identity": self._identity,
            "started": self._started,
            "updated": _now(),
            "seconds": round(self.seconds, 3),
            "command": sys.argv,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "versions": {package: version(package) for package in PACKAGES},
            **facts,
        }
        write_json(self.path / RUN_FILE, record)

    def file(self, name: str) -> Path:
        """Path of a file in this folder."""
        return self.path / name


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def differing_keys(old: Any, new: Any, prefix: str = "") -> list[str]:
    """Dotted keys in which two JSON values differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            key
            for name in old.keys() | new.keys()
            for key in differing_keys(old.get(name), new.get(name), f"{prefix}.{name}" if prefix else str(name))
        ]
    return [] if old == new else [prefix or "config"]


def read_json(path: Path) -> Any:
    """The JSON in a file; None when there is no such file. Raises `StoreError` when it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} cannot be read ({error}); restore it or name another folder") from None


def _draft_name(name: str, owner: int | str) -> str:
    return f".{name}.{owner}.tmp"


def write_json(path: Path, data: Any) -> None:
    """`write_text` of indented JSON."""
    write_text(path, json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write beside the file, then replace it in one step. Raises `StoreError`; the old file then stays as it was."""
    draft = path.with_name(_draft_name(path.name, os.getpid()))
    try:
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise StoreError(
            f"cannot write {path}: {error.strerror}; make room or name another folder with --out"
        ) from None
