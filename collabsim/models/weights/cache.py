"""The cache beside the generations: hashes of large files, and folders made once.

In: files, or a recipe for a folder. Out: a SHA-256 that is computed again only when size or time of a file changed; a
folder that is there in full or not at all. Left out on purpose: clearing up (delete the folder, it is all made again).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from collabsim.errors import PrerequisiteError
from collabsim.optional_packages import first_line, require

_BLOCK = 2**22


def cache_folder() -> Path:
    """`collabsim/models` in `$XDG_CACHE_HOME` or `~/.cache`. Raises `PrerequisiteError` when the user has no home."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not cache.is_absolute():  # unset, or to be ignored by the XDG standard
        try:
            cache = Path.home() / ".cache"
        except RuntimeError as error:
            raise PrerequisiteError("this user has no home folder to keep models in; set XDG_CACHE_HOME") from error
    return cache / "collabsim" / "models"


def sha256_of(parts: Sequence[Path]) -> str:
    """The hash of the files' joined bytes, as 64 hex digits; remembered by path, size and time of change."""
    names = json.dumps([str(part.resolve()) for part in parts])
    stamp = _stamp(parts)
    if known := _recall(names, stamp):
        return known
    running = hashlib.sha256()
    for part in parts:
        with part.open("rb") as file:
            while block := file.read(_BLOCK):
                running.update(block)
    computed = running.hexdigest()
    if _stamp(parts) == stamp:  # else somebody is still writing
        _remember(names, stamp, computed)
    return computed


def _stamp(parts: Sequence[Path]) -> str:
    return json.dumps([(state.st_size, state.st_mtime_ns) for state in (part.stat() for part in parts)])


def _recall(names: str, stamp: str) -> str | None:
    try:
        with closing(_hashes()) as hashes:
            row = hashes.execute("SELECT sha256 FROM files WHERE names = ? AND stamp = ?", (names, stamp)).fetchone()
    except (sqlite3.Error, OSError):
        return None
    return str(row[0]) if row else None


def _remember(names: str, stamp: str, sha256: str) -> None:
    try:
        with closing(_hashes()) as hashes, hashes:
            hashes.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", (names, stamp, sha256))
    except (sqlite3.Error, OSError):
        pass  # a cache that cannot be written costs time, nothing else


def _hashes() -> sqlite3.Connection:
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    hashes = sqlite3.connect(folder / "hashes.sqlite", timeout=10)
    hashes.execute(
        "CREATE TABLE IF NOT EXISTS files (names TEXT PRIMARY KEY, stamp TEXT NOT NULL, sha256 TEXT NOT NULL)"
    )
    return hashes


def make_once(folder: Path, fill: Callable[[Path], None]) -> Path:
    """`folder`, made by `fill(empty folder)` when it is not there yet.

    It appears in one step, after `fill` returned; of several processes one fills and the others wait. What a killed
    process left is deleted by the next. Raises `PrerequisiteError` when the disk is full or cannot be written.
    """
    if folder.is_dir():
        return folder
    filelock = require("filelock", "converting a model")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(folder.with_name(f"{folder.name}.lock")):
            if not folder.is_dir():
                _make(folder, fill)
    except OSError as error:
        raise PrerequisiteError(
            f"cannot make {folder} ({first_line(error)}); free space there, or set XDG_CACHE_HOME to another folder"
        ) from error
    return folder


def _make(folder: Path, fill: Callable[[Path], None]) -> None:
    prefix = f".{folder.name}.unfinished-"
    for left in folder.parent.glob(f"{prefix}*"):  # nobody else is at work: we hold the lock
        shutil.rmtree(left, ignore_errors=True)
    unfinished = Path(tempfile.mkdtemp(prefix=prefix, dir=folder.parent))
    try:
        unfinished.chmod(0o755)
        fill(unfinished)
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
