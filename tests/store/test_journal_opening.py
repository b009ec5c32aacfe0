import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest

from collabsim.errors import StoreError
from collabsim.store import Journal, Schema

SCHEMA = Schema("test file", 0x74657374, (("CREATE TABLE t (k INTEGER PRIMARY KEY, v BLOB)",),))
INSERT = "INSERT INTO t VALUES (?, ?)"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.sqlite"


def make_foreign(path):
    with sqlite3.connect(path) as foreign:
        foreign.execute("CREATE TABLE mine (x)")
    foreign.close()


def make_newer(path):
    Journal(path, SCHEMA).close()
    with sqlite3.connect(path) as newer:
        newer.execute("PRAGMA user_version = 2")
    newer.close()


def make_other_kind(path):
    Journal(path, Schema("run folder", 5, SCHEMA.steps)).close()


def make_cut(path):
    with Journal(path, SCHEMA) as journal:
        for key in range(20):
            journal.append(INSERT, (key, b"x" * 3000))
    path.write_bytes(path.read_bytes()[:5000])


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (make_foreign, "something else"),
        (make_other_kind, "something else"),
        (make_newer, "version 2.*update collabsim"),
        (lambda path: path.write_text("notes of mine\n"), "not a database"),
        (lambda path: path.write_bytes(bytes(range(256)) * 100), "not a database"),
        (make_cut, "damaged"),
    ],
)
def test_a_file_that_is_not_ours_is_refused_in_one_line_and_left_as_it_is(path, make, says):
    make(path)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=says) as refused:
        Journal(path, SCHEMA)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)
    assert path.read_bytes() == before


def test_an_empty_file_is_taken_as_new(path):
    path.touch()
    with Journal(path, SCHEMA) as journal:
        assert journal.read("SELECT * FROM t") == []


def test_an_older_file_is_brought_up_to_date_with_its_rows(path):
    with Journal(path, SCHEMA) as journal:
        journal.append(INSERT, (1, b"old"))
    newer = Schema(SCHEMA.name, SCHEMA.application_id, (*SCHEMA.steps, ("ALTER TABLE t ADD COLUMN w DEFAULT 7",)))
    with Journal(path, newer) as journal:
        assert journal.read("SELECT k, v, w FROM t") == [(1, b"old", 7)]
    with pytest.raises(StoreError, match="version 2"):
        Journal(path, SCHEMA)


def test_a_page_damaged_later_is_a_store_error_when_read(path):
    with Journal(path, SCHEMA) as journal:
        for key in range(20):
            journal.append(INSERT, (key, b"x" * 3000))
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096)
    with Journal(path, SCHEMA) as journal, pytest.raises(StoreError, match="damaged"):
        journal.read("SELECT * FROM t")


@pytest.mark.parametrize(("name", "says"), [("missing/journal.sqlite", "expected a folder"), (".", "got a folder")])
def test_a_path_that_cannot_be_a_file_is_a_store_error(tmp_path, name, says):
    with pytest.raises(StoreError, match=says):
        Journal(tmp_path / name, SCHEMA)


def error_of_ordinary_user(path):
    """What opening says to a user who is not root."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            Journal(path, SCHEMA).close()
            os.write(writing, b"opened")
        except BaseException as error:
            os.write(writing, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        os.waitpid(child, 0)
        return answer.read()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("folder_mode", "file_mode"), [(0o777, 0o444), (0o555, 0o666), (0o555, None), (0o000, 0o666)])
def test_a_file_or_folder_without_permission_is_a_store_error(folder_mode, file_mode):
    folder = Path(tempfile.mkdtemp())  # outside tmp_path, which only its owner may enter
    path = folder / "journal.sqlite"
    try:
        if file_mode is not None:
            Journal(path, SCHEMA).close()
            path.chmod(file_mode)
        folder.chmod(folder_mode)
        answer = error_of_ordinary_user(path)
        assert answer.startswith("StoreError")
        assert str(folder) in answer
    finally:
        folder.chmod(0o777)
        shutil.rmtree(folder)
