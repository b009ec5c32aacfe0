"""One SQLite file, written by one thread in grouped commits, read from any thread.

In: SQL statements with their parameters. Out: futures that are done once the statement is committed, and rows. Safe
under `kill -9`: what a future reported is in the file (WAL with `synchronous=NORMAL`; a power cut may lose the last
commits but never damages the file). The schema is the caller's, so the generation store and the run folder share
this. Left out on purpose: an object mapper, and use of one journal on both sides of a fork.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, NamedTuple

from collabsim.errors import StoreError
from collabsim.store.sqlite import Schema, connect, explain, is_busy, open_file, transaction

Statement = tuple[str, Sequence[Any]]

GROUP = 1000
"""Most entries in one commit, so that none of them waits long for the rest (some ten milliseconds in all)."""


class _Entry(NamedTuple):
    """Statements that are committed together, and the future of the number of rows they changed."""

    statements: tuple[Statement, ...]
    done: Future[int]


class _Writer(threading.Thread):
    """The only thread that writes to a file: takes what has queued up, commits it at once, reports.

    There is no timer: while one group is being committed the next one gathers, so a lone entry never waits and a crowd
    shares a commit. It does not refer to its `Journal`, which can thus be collected and then closes it.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        super().__init__(name=f"collabsim-writer {path.name}", daemon=True)
        self.failure: Exception | None = None
        self._connection = connection
        self._path = path
        self._queue: SimpleQueue[_Entry | None] = SimpleQueue()
        self._gate = threading.Lock()
        self._closed = False
        self._pid = os.getpid()

    def put(self, statements: tuple[Statement, ...]) -> Future[int]:
        entry = _Entry(statements, Future())
        self.check_process()
        with self._gate:
            if self._closed:
                raise StoreError(f"expected an open file, but {self._path} was closed; open it again before writing")
            self._queue.put(entry)
        return entry.done

    def of_this_process(self) -> bool:
        return os.getpid() == self._pid

    def check_process(self) -> None:
        if not self.of_this_process():
            raise StoreError(
                f"{self._path} was opened before this process was forked off; open it again in this process"
            )

    def run(self) -> None:
        while (group := self._next_group()) is not None:
            self._commit(group)
        self._connection.close()

    def _next_group(self) -> list[_Entry] | None:
        """All that waits in the queue, at least one entry; None after the last."""
        entry = self._queue.get()
        group: list[_Entry] = []
        while entry is not None:
            if entry.done.set_running_or_notify_cancel():
                group.append(entry)
            if len(group) == GROUP:
                return group
            try:
                entry = self._queue.get_nowait()
            except Empty:
                return group
        if group:
            self._queue.put(None)  # nothing is queued behind the end mark, so the next call takes it again
        return group or None

    def _commit(self, group: list[_Entry]) -> None:
        try:
            counts = self._transact(group)
        except Exception as error:
            # One bad or too large entry must not fail its neighbours; a lock, though, fails them all alike.
            if len(group) > 1 and not is_busy(error):
                for entry in group:
                    self._commit([entry])
                return
            self.failure = self.failure or explain(error, self._path)
            for entry in group:
                entry.done.set_exception(explain(error, self._path))
        else:
            for entry, count in zip(group, counts, strict=True):
                entry.done.set_result(count)

    def _transact(self, group: list[_Entry]) -> list[int]:
        if not any(entry.statements for entry in group):
            return [0] * len(group)
        execute = self._connection.execute
        with transaction(self._connection, "IMMEDIATE"):
            return [sum(max(execute(*statement).rowcount, 0) for statement in entry.statements) for entry in group]

    def stop(self) -> None:
        """Commit what is queued, close the file, end the thread."""
        with self._gate:
            self._closed = True
            self._queue.put(None)
        if threading.current_thread() is not self:
            self.join()


class Journal:
    """A SQLite file of one `Schema`, made if it does not exist. A context manager; also closed at exit.

    Raises `StoreError` on opening when the folder is missing, the file may not be read and written, is no database, is
    damaged, or belongs to another program or a newer collabsim. Such a file is left as it is.
    """

    def __init__(self, path: Path | str, schema: Schema) -> None:
        self.path = Path(path).absolute()
        self._writer = _Writer(open_file(self.path, schema), self.path)
        self._reader = connect(self.path)
        self._reading = threading.Lock()
        self._closed = False
        self._writer.start()
        self._closing = weakref.finalize(self, _close, self._reader, self._writer)

    def append(self, sql: str, params: Sequence[Any] = ()) -> Future[int]:
        """Queue one statement.

        Returns a future of the number of rows changed, done after the commit. It fails with `StoreError` when the
        file cannot take the statement (full disk, lock held for too long, ...), and with SQLite's own error for
        wrong SQL; what was committed before is not touched, and later statements are tried afresh. Raises
        `StoreError` when closed.
        """
        return self._writer.put(((sql, params),))

    def append_all(self, statements: Iterable[Statement]) -> Future[int]:
        """Queue statements that are committed together or not at all; otherwise as `append`."""
        return self._writer.put(tuple(statements))

    def read(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query, as of the last commit, from any thread. Raises `StoreError` when that cannot be read."""
        self._writer.check_process()
        with self._reading:
            if self._closed:
                raise StoreError(f"expected an open file, but {self.path} was closed; open it again before reading")
            try:
                return self._reader.execute(sql, params).fetchall()
            except sqlite3.Error as error:
                raise explain(error, self.path) from error

    def flush(self) -> None:
        """Wait until all that was appended so far is committed. Raises the first failure since the last flush."""
        wait([self._writer.put(())])
        failure, self._writer.failure = self._writer.failure, None
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Commit what is queued and close the file. Safe to call again."""
        with self._reading:  # lets a read that is under way end
            self._closed = True
        self._closing()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _close(reader: sqlite3.Connection, writer: _Writer) -> None:
    if writer.of_this_process():
        reader.close()
        writer.stop()  # last, for SQLite tidies up its side files when the last connection goes
