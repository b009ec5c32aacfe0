"""Single flight: all callers that ask for one key share one piece of work.

In: a key and a coroutine to run if nobody runs it yet. Out: its result, to all callers that asked meanwhile. Left
out on purpose: keeping results (the store does) and trying again.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Hashable
from concurrent.futures import Future
from contextvars import Context
from types import TracebackType
from typing import Any, Generic, NamedTuple, TypeVar

from collabsim.errors import CallError
from collabsim.loop import submit

T = TypeVar("T")


def _submit_alone(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Run a coroutine on the background loop in an empty context, so that it sees nothing of the run that asked."""
    return Context().run(submit, coroutine)


class _Failure(NamedTuple):
    """The end of work without a result."""

    error: Exception
    trace: TracebackType | None
    """Traceback of the error, before the first caller raised it again."""


class _Flight(Generic[T]):
    """Work under way, and how many wait for it."""

    __slots__ = ("landed", "task", "waiting")

    def __init__(self) -> None:
        self.landed: Future[T | _Failure] = Future()
        # A running future cannot be cancelled: an asker that is cancelled does not take it from the others.
        self.landed.set_running_or_notify_cancel()
        self.task: Future[None] | None = None
        self.waiting = 0


class SingleFlight(Generic[T]):
    """The flights of one store. Used from any thread and any event loop."""

    def __init__(self) -> None:
        self._flights: dict[Hashable, _Flight[T]] = {}
        self._lock = threading.Lock()

    def under_way(self, key: Hashable) -> bool:
        """Whether somebody waits for this key now."""
        return key in self._flights

    async def share(self, key: Hashable, start: Callable[[], Coroutine[Any, Any, T]]) -> tuple[T, bool]:
        """The result of the work under way for `key`, else of `start()`; and whether it was started here.

        It runs on the background loop for as long as anybody waits: neither the cancellation of the asker who
        started it nor the end of that asker's loop touches the others. What it raises is raised to all of them;
        none of it is kept.
        """
        with self._lock:
            flight = self._flights.get(key)
            leads = flight is None
            if flight is None:
                flight = _Flight()
                flight.task = _submit_alone(self._fly(key, flight, start))
                self._flights[key] = flight
            flight.waiting += 1
        try:
            landed = await asyncio.wrap_future(flight.landed)
        except asyncio.CancelledError:
            self._leave(key, flight)
            raise
        if isinstance(landed, _Failure):
            # All raise one object, since not every exception can be copied; each starts with the first traceback.
            raise landed.error.with_traceback(landed.trace)
        return landed, leads

    async def _fly(self, key: Hashable, flight: _Flight[T], start: Callable[[], Coroutine[Any, Any, T]]) -> None:
        try:
            result = await start()
        except BaseException as error:
            self._take_off_board(key, flight)
            flight.landed.set_result(_failure(error))
            if isinstance(error, asyncio.CancelledError):
                raise
        else:
            self._take_off_board(key, flight)
            flight.landed.set_result(result)

    def _leave(self, key: Hashable, flight: _Flight[T]) -> None:
        """One caller less; when the last one leaves, the work is cancelled."""
        with self._lock:
            flight.waiting -= 1
            abandoned = flight.waiting == 0 and self._flights.get(key) is flight
            if abandoned:
                del self._flights[key]
        if abandoned and flight.task is not None:
            flight.task.cancel()

    def _take_off_board(self, key: Hashable, flight: _Flight[T]) -> None:
        with self._lock:
            if self._flights.get(key) is flight:
                del self._flights[key]


def _failure(error: BaseException) -> _Failure:
    """The failure for all callers, none of whom must take it for its own cancellation, or for Ctrl-C."""
    if isinstance(error, Exception):
        return _Failure(error, error.__traceback__)
    stopped = CallError(f"the call was stopped before it ended ({type(error).__name__}); ask again")
    stopped.__cause__ = error
    return _Failure(stopped, None)
