"""Opens SQLite files of a known schema, and explains in one sentence why one cannot be opened.

In: a path and a `Schema`. Out: a connection to a file that has exactly this schema. A file of another program, or
of a newer collabsim, is refused and left as it is.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from collabsim.errors import StoreError

BUSY_SECONDS = 30.0
"""Longest wait of a statement for another process's lock. Commits take milliseconds: after this time one hangs."""

_REASONS = {
    sqlite3.SQLITE_FULL: "there is no room left on the disk; free some and run the same command again",
    sqlite3.SQLITE_IOERR: "the disk failed or is full; check it and run the same command again",
    sqlite3.SQLITE_READONLY: "it may not be written; change its permissions or name another file",
    sqlite3.SQLITE_PERM: "it may not be read and written; change its permissions or name another file",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check that path, permissions and disk are in order",
    sqlite3.SQLITE_BUSY: f"another process held its lock for {BUSY_SECONDS:.0f} seconds; end that one and try again",
    sqlite3.SQLITE_LOCKED: "another connection holds its lock; try again",
    sqlite3.SQLITE_NOTADB: "it is not a database; move it away or name another file",
    sqlite3.SQLITE_CORRUPT: "it is damaged; move it away (a new one is made) or restore it from a copy",
    sqlite3.SQLITE_NOMEM: "there is not enough memory",
    sqlite3.SQLITE_PROTOCOL: "its file system has no working locks; name a file on a local disk",
}


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables of a file, and the steps from version to version."""

    name: str
    """Name of such a file in messages: `generation store`."""
    application_id: int
    """Signed 32-bit mark in the file's header that tells our kinds of files apart; never 0."""
    steps: tuple[tuple[str, ...], ...]
    """Step k holds the SQL statements that make version k + 1 out of version k. Steps are added, never changed."""

    @property
    def version(self) -> int:
        """The version that all steps together make."""
        return len(self.steps)


def explain(error: Exception, path: Path) -> Exception:
    """The `StoreError` that says why SQLite or the system refused; wrong SQL (a bug of ours) is returned as is."""
    if isinstance(error, OSError):
        return StoreError(
            f"cannot use {path}: {error.strerror or error}; check the disk and run the same command again"
        )
    reason = _REASONS.get(_code(error))
    return StoreError(f"cannot use {path}: {reason} ({error})") if reason else error


def is_busy(error: Exception) -> bool:
    """Whether another process held the lock for all the time we waited."""
    return _code(error) == sqlite3.SQLITE_BUSY


def _code(error: Exception) -> int:
    """SQLite's primary result code; 0 for errors that SQLite did not report itself."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str) -> Iterator[None]:
    """A transaction of kind DEFERRED or IMMEDIATE: committed at the end, rolled back on any error."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk may have rolled it back already
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        raise


def connect(path: Path) -> sqlite3.Connection:
    """A connection that any thread may use, in autocommit mode. Raises `StoreError`."""
    try:
        connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA synchronous = NORMAL")
    except sqlite3.Error as error:
        raise explain(error, path) from error
    return connection


def open_file(path: Path, schema: Schema) -> sqlite3.Connection:
    """A connection to a file of this schema, which is made, or brought up to the latest version, if need be.

    Raises `StoreError` when the file cannot be used, and leaves it as it is.
    """
    _check_access(path)
    connection = connect(path)
    try:
        with transaction(connection, "DEFERRED"):  # one snapshot: another process may be making the file
            version = _stored_version(connection, path, schema)
        _use_wal(connection)
        if version < schema.version:
            _upgrade(connection, path, schema)
    except BaseException as error:
        connection.close()
        if isinstance(error, sqlite3.Error):
            raise explain(error, path) from error
        raise
    return connection


def _check_access(path: Path) -> None:
    # os.path, since pathlib raises where a folder may not be entered
    if not os.path.isdir(path.parent):
        raise StoreError(f"expected a folder at {path.parent}, found none; make it, or name a file in another folder")
    if os.path.isdir(path):
        raise StoreError(f"expected a file at {path}, got a folder; name a file in it")
    if os.path.exists(path) and not os.access(path, os.R_OK | os.W_OK):
        raise StoreError(f"{path} may not be read and written; change its permissions or name another file")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise StoreError(f"the folder {path.parent} may not be written; change its permissions or name another file")


def _stored_version(connection: sqlite3.Connection, path: Path, schema: Schema) -> int:
    """The version of the file, 0 when it is empty. Raises `StoreError` for a foreign or newer one."""
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application_id == schema.application_id and version <= schema.version:
        return int(version)
    if application_id == schema.application_id:
        raise StoreError(
            f"{path} is a {schema.name} of version {version}, this collabsim knows versions up to {schema.version}; "
            "update collabsim, or name another file"
        )
    if (application_id, version, tables) == (0, 0, 0):
        return 0
    raise StoreError(f"expected a {schema.name} at {path}, got a database of something else; name another file")


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to the write-ahead log. SQLite does not wait for locks here, so we do."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _upgrade(connection: sqlite3.Connection, path: Path, schema: Schema) -> None:
    with transaction(connection, "IMMEDIATE"):
        version = _stored_version(connection, path, schema)  # another process may have been first
        for step in schema.steps[version:]:
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {schema.application_id}")
        connection.execute(f"PRAGMA user_version = {schema.version}")
