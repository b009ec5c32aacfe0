"""The one thread on which vLLM works in this process.

In: jobs (functions without arguments) from any thread, and engines that want to be stepped. Out: futures of what the
jobs return. vLLM keeps the state of a forward pass in module globals: two engines stepped, started or closed at once from
two threads corrupt each other. So every touch of any engine happens here, in turn. The thread starts with the first job
and ends when no engine is left. Left out on purpose: what the jobs do.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol, TypeVar

T = TypeVar("T")


class Steppable(Protocol):
    """What is stepped, on the stepping thread."""

    @property
    def busy(self) -> bool:
        """Whether a step would do anything."""

    def step(self) -> None:
        """One step of all requests in flight. Never raises."""

    def leave(self) -> None:
        """Called in the child of a fork, which has no stepping thread."""


class Stepper:
    """A queue of jobs and the engines of one process, worked on by one thread."""

    def __init__(self) -> None:
        self.engines: list[Steppable] = []
        """Those that are open, in the order they started; read and changed by jobs only."""
        self._changed = threading.Condition()
        self._jobs: deque[Callable[[], object]] = deque()
        self._thread: threading.Thread | None = None

    def post(self, job: Callable[[], object]) -> None:
        """Do `job` between two steps. It must not raise."""
        with self._changed:
            self._jobs.append(job)
            if self._thread is None:
                # A daemon, so that a step that hangs does not keep a finished program alive.
                self._thread = threading.Thread(target=self._work, name="collabsim-vllm", daemon=True)
                self._thread.start()
            else:
                self._changed.notify()

    def run(self, job: Callable[[], T]) -> Future[T]:
        """Do `job` between two steps; the future has what it returns or raises."""
        future: Future[T] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = job()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        self.post(work)
        return future

    @property
    def inside(self) -> bool:
        """Whether the caller runs on the stepping thread."""
        return threading.current_thread() is self._thread

    @property
    def working(self) -> bool:
        """Whether the thread runs. At the end of a program no new one can be started."""
        return self._thread is not None

    def _work(self) -> None:
        while (jobs := self._next_jobs()) is not None:
            for job in jobs:
                job()
            for engine in [engine for engine in self.engines if engine.busy]:
                engine.step()

    def _next_jobs(self) -> list[Callable[[], object]] | None:
        """What is to be done before the next step; waits when there is nothing to step; None ends the thread."""
        with self._changed:
            while not self._jobs and not any(engine.busy for engine in self.engines):
                if not self.engines:
                    self._thread = None
                    return None
                self._changed.wait()
            jobs = list(self._jobs)
            self._jobs.clear()
            return jobs


_current = Stepper()


def stepper() -> Stepper:
    """The stepper of this process."""
    return _current


def _forget_engines_of_parent() -> None:
    """After a fork the child has neither the thread nor working engines; what it starts is its own."""
    global _current
    for engine in _current.engines:
        engine.leave()
    _current = Stepper()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_engines_of_parent)
