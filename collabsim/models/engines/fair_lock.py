"""A lock whose holders come in the order in which they asked.

A plain lock goes back to whoever released it last when that thread asks again at once, so of two busy engines one would
starve.
"""

from __future__ import annotations

import threading
from collections import deque
from types import TracebackType


class Turns:
    """A context manager; not reentrant."""

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
