"""Room for one merged model at a time: whoever wants another waits until nobody uses the one that is there.

In: keys of models. Out: a context in which the model of that key may be loaded and used. A sweep groups its runs by
coalition, so that each is loaded once. Left out on purpose: loading itself. Works from any event loop and thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import asynccontextmanager


class Residence:
    """A lock that is shared by all who ask for the same key."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key = ""
        self._users = 0
        self._queue: deque[tuple[str, Future[None]]] = deque()

    @asynccontextmanager
    async def hold(self, key: str) -> AsyncIterator[None]:
        """Wait until `key` has the room; others with that key may be inside too."""
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
