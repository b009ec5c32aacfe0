from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from engines import requires

from collabsim.errors import PrerequisiteError
from collabsim.models.weights.cache import cache_folder, make_once, sha256_of

needs_lock = requires("filelock")
FILLS_SLOWLY = """
import sys, time
from pathlib import Path
from collabsim.models.weights.cache import make_once

def fill(folder):
    (folder / "first").write_text("half")
    print("half done", flush=True)
    time.sleep(float(sys.argv[2]))
    (folder / "second").write_text("whole")
    print("filled", flush=True)

make_once(Path(sys.argv[1]), fill)
"""


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def filling(folder: Path, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", FILLS_SLOWLY, str(folder), str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def fill(folder: Path) -> None:
    (folder / "second").write_text("whole")


def test_the_hash_of_parts_is_that_of_the_joined_file(tmp_path: Path) -> None:
    parts = [tmp_path / "a", tmp_path / "b"]
    for part in parts:
        part.write_bytes(part.name.encode() * 1000)
    assert sha256_of(parts) == hashlib.sha256(b"a" * 1000 + b"b" * 1000).hexdigest()


def test_a_hash_is_remembered_until_the_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("one")
    before = sha256_of([file])
    assert sha256_of([file]) == before
    file.write_text("other")
    assert sha256_of([file]) == hashlib.sha256(b"other").hexdigest()


def test_a_damaged_hash_cache_costs_only_time(tmp_path: Path) -> None:
    cache_folder().mkdir(parents=True)
    (cache_folder() / "hashes.sqlite").write_bytes(b"no database" * 100)
    file = tmp_path / "a"
    file.write_text("one")
    assert sha256_of([file]) == hashlib.sha256(b"one").hexdigest()


@needs_lock
def test_a_folder_is_filled_once(tmp_path: Path) -> None:
    make_once(tmp_path / "made", fill)
    make_once(tmp_path / "made", lambda folder: pytest.fail("filled twice"))
    assert (tmp_path / "made" / "second").read_text() == "whole"


@needs_lock
def test_a_failed_filling_leaves_nothing(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        fill(folder)
        raise KeyError("broken")

    with pytest.raises(KeyError):
        make_once(tmp_path / "models" / "made", fail)
    assert [path.name for path in (tmp_path / "models").iterdir() if path.is_dir()] == []


@needs_lock
def test_threads_fill_a_folder_once(tmp_path: Path) -> None:
    filled = []

    def slow(folder: Path) -> None:
        filled.append(folder)
        time.sleep(0.2)
        fill(folder)

    threads = [threading.Thread(target=make_once, args=(tmp_path / "made", slow)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(filled) == 1


@needs_lock
def test_two_processes_fill_a_folder_once(tmp_path: Path) -> None:
    both = [filling(tmp_path / "made", 1.0) for _ in range(2)]
    said = [process.communicate(timeout=60)[0] for process in both]
    assert sorted(said) == ["", "half done\nfilled\n"]


@needs_lock
def test_a_killed_filling_leaves_nothing_that_is_taken_for_good(tmp_path: Path) -> None:
    process = filling(tmp_path / "models" / "made", 60)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "models" / "made").exists()
    make_once(tmp_path / "models" / "made", fill)
    assert [path.name for path in (tmp_path / "models" / "made").iterdir()] == ["second"]
    assert list((tmp_path / "models").glob("*unfinished*")) == []


@needs_lock
def test_a_place_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PrerequisiteError, match="set XDG_CACHE_HOME"):
        make_once(tmp_path / "file" / "made", fill)
