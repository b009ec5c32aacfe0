"""Locks that the standard library lacks: one that is fair, and one that is shared by key.

In: threads, or coroutines with keys. Out: contexts. Left out on purpose: what is done inside.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from types import TracebackType


class FairLock:
    """Holders come in the order in which they asked; not reentrant.

    A plain lock goes back to whoever released it last when that thread asks again at once, so of two busy engines one would
    starve.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue: deque[threading.Lock] = deque()

    def __enter__(self) -> None:
        mine = threading.Lock()
        mine.acquire()
        with self._lock:
            self._queue.append(mine)
            if self._queue[0] is mine:
                return
        mine.acquire()  # released by the one before

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._lock:
            self._queue.popleft()
            if self._queue:
                self._queue[0].release()


class SharedLock:
    """Held together by all who ask for the same key; whoever asks for another waits until nobody holds it.

    Works from any event loop and thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key = ""
        self._users = 0
        self._queue: deque[tuple[str, Future[None]]] = deque()

    @asynccontextmanager
    async def hold(self, key: str) -> AsyncIterator[None]:
        """Wait until `key` has the lock; others with that key may hold it too."""
        ticket: Future[None] = Future()
        ticket.set_running_or_notify_cancel()  # so that a cancelled waiter does not cancel it under our hands
        with self._lock:
            if self._users == 0 or self._key == key:
                self._admit(key, ticket)
            else:
                self._queue.append((key, ticket))
        try:
            await asyncio.wrap_future(ticket)
            yield
        finally:
            self._leave(key, ticket)

    def _admit(self, key: str, ticket: Future[None]) -> None:
        self._key = key
        self._users += 1
        ticket.set_result(None)

    def _leave(self, key: str, ticket: Future[None]) -> None:
        with self._lock:
            if not ticket.done():
                self._queue.remove((key, ticket))
                return
            self._users -= 1
            if self._users == 0 and self._queue:
                first = self._queue[0][0]
                admitted = [entry for entry in self._queue if entry[0] == first]
                self._queue = deque(entry for entry in self._queue if entry[0] != first)
                for _, waiting in admitted:
                    self._admit(first, waiting)
