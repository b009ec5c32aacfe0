"""The background event loop of a process, and synchronous access to it.

In: coroutines, from any thread, with or without a running loop of its own. Out: `concurrent.futures.Future`s, or
results. The loop lives in a daemon thread that starts on first use, so scripts, notebooks and asyncio programs all
reach the same engines. Left out on purpose: pools of loops and executors; whoever needs a thread uses
`asyncio.to_thread`.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, Generic, TypeVar

from collabsim.errors import CollabsimError

T = TypeVar("T")

EXIT_SECONDS = 2.0
"""Longest time that the clean-up of cancelled work may delay the end of the process."""
CANCEL_SECONDS = 0.1
"""How often a synchronous call inside a task looks whether the task was cancelled."""
MOST_THREADS = 1024
"""Threads for blocking work on the loop; each is started when all others are busy."""


class _LoopThread(threading.Thread):
    """An event loop and the daemon thread that runs it."""

    def __init__(self) -> None:
        super().__init__(name="collabsim-loop", daemon=True)
        self.loop = asyncio.new_event_loop()
        # Synchronous nodes wait in these threads for models, and synchronous models answer in them: with the few threads
        # of asyncio's own pool, nodes that wait would keep the models that they wait for from ever starting.
        self.loop.set_default_executor(ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="collabsim"))
        self.running: set[Future[Any]] = set()
        self._stopping = False

    def run(self) -> None:
        asyncio.set_event_loop(self.loop)
        while not self._stopping:
            # A task that ends in SystemExit or KeyboardInterrupt throws it out of run_forever as well. Its own future
            # has it already; the other tasks must live on.
            with suppress(SystemExit, KeyboardInterrupt):
                self.loop.run_forever()
        self.loop.close()

    def stop(self, seconds: float) -> None:
        """Cancel every task, give their clean-up `seconds`, end the thread."""
        asyncio.run_coroutine_threadsafe(self._wind_up(), self.loop)
        self.join(seconds)

    async def _wind_up(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.loop.shutdown_asyncgens()
        self._stopping = True
        self.loop.stop()


_lock = threading.Lock()
_current: _LoopThread | None = None
_left_behind: list[_LoopThread] = []


def _loop_thread() -> _LoopThread:
    global _current
    if _current is None:
        with _lock:
            if _current is None:
                thread = _LoopThread()
                thread.start()
                _current = thread
    return _current


def background_loop() -> asyncio.AbstractEventLoop:
    """The loop of this process, started if it does not run yet."""
    return _loop_thread().loop


def submit(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Run a coroutine on the background loop, from any thread.

    Returns a future of its result; cancelling the future cancels the coroutine.
    """
    thread = _loop_thread()
    future = asyncio.run_coroutine_threadsafe(coroutine, thread.loop)
    # asyncio refers to tasks weakly; the future refers to its task, and this set to the future until it is done.
    thread.running.add(future)
    future.add_done_callback(thread.running.discard)
    return future


class _Started(Generic[T]):
    """A coroutine on a loop whose `outcome` is set when it has really ended, also after a cancellation."""

    def __init__(self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T]) -> None:
        self.outcome: Future[T] = Future()
        self._loop = loop
        self._task: asyncio.Task[T] | None = None
        loop.call_soon_threadsafe(self._start, coroutine)

    def _start(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._task = self._loop.create_task(coroutine)
        self._task.add_done_callback(self._settle)

    def _settle(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self.outcome.set_exception(asyncio.CancelledError())
        elif (error := task.exception()) is not None:
            self.outcome.set_exception(error)
        else:
            self.outcome.set_result(task.result())

    def cancel(self) -> None:
        self._loop.call_soon_threadsafe(self._cancel_task)

    def _cancel_task(self) -> None:
        if self._task is not None:  # always set by now: the loop calls back in the order it was asked
            self._task.cancel()


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, for synchronous callers in scripts and in notebooks.

    It runs on the background loop while this thread waits. An interrupt of the wait (Ctrl-C) cancels the coroutine,
    waits for its clean-up, and is raised again; a second interrupt does not wait. Inside `asyncio.run` an interrupt
    arrives as a cancellation of the task that called; it ends the wait in the same way, as `CancelledError`. Raises what
    the coroutine raises, and `CollabsimError` when called on the background loop itself, which it would block for ever.
    """
    thread = _loop_thread()
    if threading.get_ident() == thread.ident:
        coroutine.close()
        raise CollabsimError(
            "expected a synchronous caller, got a call from inside collabsim's own event loop (a node or a model); "
            "await the asynchronous twin there (its name begins with `a`)"
        )
    started = _Started(thread.loop, coroutine)
    try:
        return _result(started.outcome, _task_of_this_thread())
    except BaseException:
        if not started.outcome.done():
            started.cancel()
            wait([started.outcome])
        raise


def _task_of_this_thread() -> asyncio.Task[Any] | None:
    """The task that is blocked while this thread waits; None in plain code."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def _result(outcome: Future[T], blocked: asyncio.Task[Any] | None) -> T:
    """The result of `outcome`. Raises `CancelledError` when the task that waits for it is cancelled meanwhile."""
    if blocked is None:
        return outcome.result()
    before = blocked.cancelling()
    while not wait([outcome], CANCEL_SECONDS).done:
        # asyncio.run turns the first Ctrl-C into a cancellation, which cannot interrupt a task that blocks its thread.
        if blocked.cancelling() > before:
            raise asyncio.CancelledError
    return outcome.result()


@atexit.register
def _stop_at_exit() -> None:
    if _current is not None:
        _current.stop(EXIT_SECONDS)


def _forget_loop_of_parent() -> None:
    """After a fork the child has no loop thread; it starts its own on first use.

    The old loop stays referenced: closing it would take the parent's file descriptors out of an epoll set both share.
    """
    global _current, _lock
    _lock = threading.Lock()
    if _current is not None:
        _left_behind.append(_current)
        _current = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_loop_of_parent)
