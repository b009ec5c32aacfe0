"""A gate for calls to a model whose weights are replaced now and then.

In: calls, which wait while the gate is closed. Out: a moment in which no call is under way. A call that began under old
weights and ended under new ones would belong to neither; so would a prefix cache that could not be emptied because
somebody used it. Left out on purpose: what happens while the gate is closed.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager

from collabsim.errors import CallError


class Gate:
    """Calls pass on event loops, of any thread; closing blocks a thread that is none of these."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._closing = threading.Lock()
        self._shut = False
        self._running = 0
        self._waiting: list[Future[None]] = []

    @asynccontextmanager
    async def call(self) -> AsyncIterator[None]:
        """Pass the gate, once it is open; it does not close before the block ends."""
        while (opening := self._enter()) is not None:
            await asyncio.wrap_future(opening)
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def _enter(self) -> Future[None] | None:
        """Enter, or else what to wait for before the next attempt."""
        with self._changed:
            if not self._shut:
                self._running += 1
                return None
            opening: Future[None] = Future()
            self._waiting.append(opening)
            return opening

    @contextmanager
    def closed(self, timeout: float) -> Iterator[None]:
        """No call is under way inside the block; new ones wait for its end.

        Calls that run are waited for. Raises `CallError` when they have not ended after `timeout` seconds; the gate is
        open again then.
        """
        with self._closing:
            try:
                with self._changed:
                    self._shut = True
                    if not self._changed.wait_for(lambda: self._running == 0, timeout):
                        raise CallError(
                            f"expected the calls under way to end within {timeout:.0f} s before weights are replaced, "
                            f"{self._running} still run; allow more time, or lower max_tokens"
                        )
                yield
            finally:
                self._open()

    def _open(self) -> None:
        with self._changed:
            self._shut = False
            waiting, self._waiting = self._waiting, []
        for opening in waiting:
            if opening.set_running_or_notify_cancel():
                opening.set_result(None)
