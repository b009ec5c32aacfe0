import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from collabsim.errors import StoreError
from collabsim.store import Journal, Schema
from collabsim.store import sqlite as store_sqlite

SCHEMA = Schema("test file", 0x74657374, (("CREATE TABLE t (k INTEGER PRIMARY KEY, v BLOB)",),))
INSERT = "INSERT INTO t VALUES (?, ?)"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.sqlite"


@pytest.fixture
def journal(path):
    with Journal(path, SCHEMA) as journal:
        yield journal


def keys(journal):
    return [key for (key,) in journal.read("SELECT k FROM t ORDER BY k")]


def test_an_append_is_readable_by_others_once_its_future_is_done(journal, path):
    assert journal.append(INSERT, (1, b"x")).result() == 1
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT * FROM t").fetchall() == [(1, b"x")]


def test_the_future_reports_whether_a_row_was_inserted(journal):
    statement = "INSERT OR IGNORE INTO t VALUES (?, ?)"
    assert [journal.append(statement, (1, value)).result() for value in (b"first", b"second")] == [1, 0]
    assert journal.read("SELECT v FROM t") == [(b"first",)]


def test_many_threads_write_and_each_reads_what_it_wrote(journal):
    def write_then_read(key):
        journal.append(INSERT, (key, b"")).result()
        return journal.read("SELECT k FROM t WHERE k = ?", (key,))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(write_then_read, range(1000))) == [[(key,)] for key in range(1000)]
    assert keys(journal) == list(range(1000))


def test_appends_that_queue_up_share_commits(journal, path):
    lock = sqlite3.connect(path, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")  # holds the writer back while the queue fills
    futures = [journal.append(INSERT, (key, b"")) for key in range(500)]
    lock.execute("ROLLBACK")
    journal.flush()
    assert all(future.done() for future in futures)
    # Each commit appends frames to the write-ahead log; 500 single ones would write the table's pages 500 times.
    frames = Path(f"{path}-wal").stat().st_size / 4096
    assert frames < 50


def test_a_bad_statement_fails_alone(journal, path):
    lock = sqlite3.connect(path, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    futures = [journal.append(INSERT, (key, b"")) for key in (1, 2, 2, 3)]
    wrong = journal.append("INSERT INTO nowhere VALUES (1)")
    lock.execute("ROLLBACK")
    assert isinstance(futures[2].exception(), sqlite3.IntegrityError)
    assert isinstance(wrong.exception(), sqlite3.OperationalError)
    assert [futures[index].result() for index in (0, 1, 3)] == [1, 1, 1]
    assert keys(journal) == [1, 2, 3]


def test_statements_of_one_unit_are_committed_together_or_not_at_all(journal):
    assert journal.append_all([(INSERT, (1, b"")), (INSERT, (2, b""))]).result() == 2
    assert journal.append_all([(INSERT, (3, b"")), (INSERT, (1, b""))]).exception() is not None
    assert keys(journal) == [1, 2]


def test_a_value_that_sqlite_cannot_take_does_not_end_the_writer(journal):
    assert journal.append(INSERT, (2**70, b"")).exception() is not None
    assert journal.append(INSERT, (1, object())).exception() is not None
    assert journal.append(INSERT, (1, b"")).result() == 1


def test_a_cancelled_append_is_not_written(journal, path):
    lock = sqlite3.connect(path, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    first = journal.append(INSERT, (1, b""))
    while not first.running():
        pass
    assert journal.append(INSERT, (2, b"")).cancel()
    lock.execute("ROLLBACK")
    journal.flush()
    assert keys(journal) == [1]


def test_flush_raises_what_nobody_looked_at_and_then_is_clean(journal):
    journal.append(INSERT, (1, b""))
    journal.append("INSERT INTO nowhere VALUES (1)")
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        journal.flush()
    journal.flush()
    assert keys(journal) == [1]


def test_closing_commits_what_is_queued_and_may_be_repeated(path):
    journal = Journal(path, SCHEMA)
    futures = [journal.append(INSERT, (key, b"")) for key in range(300)]
    journal.close()
    journal.close()
    assert all(future.done() for future in futures)
    assert not Path(f"{path}-wal").exists()
    with Journal(path, SCHEMA) as again:
        assert len(keys(again)) == 300


@pytest.mark.parametrize("use", [lambda journal: journal.append(INSERT, (1, b"")), keys, Journal.flush])
def test_a_closed_journal_says_so(path, use):
    journal = Journal(path, SCHEMA)
    journal.close()
    with pytest.raises(StoreError, match="closed"):
        use(journal)


def test_closing_from_a_callback_of_the_writer_does_not_deadlock(path):
    journal, closed = Journal(path, SCHEMA), threading.Event()
    lock = sqlite3.connect(path, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    journal.append(INSERT, (1, b"")).add_done_callback(lambda _: (journal.close(), closed.set()))
    lock.execute("ROLLBACK")
    assert closed.wait(5)


def test_a_journal_that_nobody_closed_is_complete_after_exit(path):
    code = f"""
from collabsim.store import Journal, Schema
journal = Journal({str(path)!r}, Schema("test file", {SCHEMA.application_id}, {SCHEMA.steps!r}))
for key in range(5000):
    journal.append({INSERT!r}, (key, b"x" * 100))
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr == ""
    with Journal(path, SCHEMA) as journal:
        assert len(keys(journal)) == 5000


def test_a_full_disk_fails_those_appends_and_nothing_else(journal):
    journal.append(INSERT, (0, b"early"))
    journal.append("PRAGMA max_page_count = 30").result()
    futures = [journal.append(INSERT, (key, os.urandom(5000))) for key in range(1, 60)]
    failures = [error for future in futures if (error := future.exception()) is not None]
    assert 0 < len(failures) < 59
    assert {type(error) for error in failures} == {StoreError}
    assert "no room left on the disk" in str(failures[0])
    assert keys(journal) == [0] + [key for key, future in enumerate(futures, 1) if future.exception() is None]
    journal.append("PRAGMA max_page_count = 100000").result()
    again = [journal.append(INSERT, (key, b"x" * 5000)) for key in range(100, 160)]
    assert sum(future.result() for future in again) == 60
    assert journal.read("PRAGMA integrity_check") == [("ok",)]


@pytest.fixture
def small_disk(tmp_path):
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        pytest.skip("needs root on Linux to mount a small disk; the test above covers the same with a page limit")
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("mounting is not allowed here; the test above covers the same with a page limit")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def test_a_disk_that_is_really_full_loses_nothing_and_is_used_again_when_there_is_room(small_disk):
    with Journal(small_disk / "journal.sqlite", SCHEMA) as journal:
        futures = [journal.append(INSERT, (key, os.urandom(5000))) for key in range(100)]
        written = [key for key, future in enumerate(futures) if future.exception() is None]
        lost = sorted(set(range(100)).difference(written))
        assert written
        assert lost
        assert keys(journal) == written
        subprocess.run(["mount", "-o", "remount,size=4m", small_disk], check=True)
        assert sum(journal.append(INSERT, (key, b"x" * 5000)).result() for key in lost) == len(lost)
    with Journal(small_disk / "journal.sqlite", SCHEMA) as journal:
        assert keys(journal) == list(range(100))
        assert journal.read("PRAGMA integrity_check") == [("ok",)]


def test_opening_on_a_full_disk_is_one_clear_error(small_disk):
    subprocess.run(f"head -c 1000000 /dev/zero > {small_disk}/filler", shell=True, capture_output=True)
    assert shutil.disk_usage(small_disk).free == 0
    with pytest.raises(StoreError, match=r"no room|full"):
        Journal(small_disk / "journal.sqlite", SCHEMA)


def test_a_lock_held_by_another_process_is_waited_for_and_then_named(path, monkeypatch):
    monkeypatch.setattr(store_sqlite, "BUSY_SECONDS", 0.05)
    with Journal(path, SCHEMA) as journal:
        lock = sqlite3.connect(path, isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        begun = time.monotonic()
        futures = [journal.append(INSERT, (key, b"")) for key in range(200)]
        errors = [future.exception() for future in futures]
        assert time.monotonic() - begun < 5  # all of them wait once, not each in turn
        assert {type(error) for error in errors} == {StoreError}
        assert "another process" in str(errors[0])
        lock.execute("ROLLBACK")
        assert journal.append(INSERT, (1, b"")).result() == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_is_told_to_open_the_file_itself(journal):
    journal.append(INSERT, (1, b"")).result()
    child = os.fork()
    if child == 0:
        told = 0
        for use in (lambda: journal.append(INSERT, (2, b"")), lambda: keys(journal)):
            try:
                use()
            except StoreError as error:
                told += "open it again in this process" in str(error)
        journal.close()
        os._exit(0 if told == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert journal.append(INSERT, (3, b"")).result() == 1
    assert keys(journal) == [1, 3]
