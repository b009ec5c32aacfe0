"""Runs programs, several at once, on warm workers.

In: examinations and scripts, from any thread or event loop. Out: reports, always; a worker that fails is replaced and its
program tried once more on a fresh one. As many programs run at once as there are cores; others wait for their turn.
"""

from __future__ import annotations

import asyncio
import atexit
import itertools
import os
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from .floor import require_floor
from .limits import Limits
from .report import Examination, Report, Script
from .worker import Worker, WorkerFailed

PACKAGES = ("numpy",)
"""Installed packages that programs may import beside the standard library."""


class Sandbox:
    """Runs programs that models wrote. Usable from several threads; a context manager, or closed at exit."""

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        workers: int | None = None,
        packages: tuple[str, ...] = PACKAGES,
        namespaces: bool = True,
    ) -> None:
        """`workers` None takes one for each core this process may use; `namespaces` False keeps to the floor.

        Raises `PrerequisiteError` below the floor.
        """
        require_floor()
        self.limits = limits or Limits()
        self.workers = workers or len(os.sched_getaffinity(0))
        self._packages = packages
        self._namespaces = namespaces
        self._numbers = itertools.count(os.getpid())
        self._reset()
        atexit.register(self.close)
        os.register_at_fork(after_in_child=self._abandon)

    def _reset(self) -> None:
        self._free: list[Worker] = []
        self._turns = threading.BoundedSemaphore(self.workers)
        self._lock = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None

    def run(self, work: Examination | Script) -> Report:
        """The report of one program; waits for a free worker. Never raises for anything that a program does."""
        report = self._tried(work)
        starved = report.ended_by == "wall" and report.waited_seconds > self.limits.wall_seconds
        # In both cases the machine may have been at fault.
        return self._tried(work) if report.ending == "error" or starved else report

    async def arun(self, work: Examination | Script) -> Report:
        """`run`, without blocking the event loop."""
        return await asyncio.wrap_future(self._executor().submit(self.run, work))

    def run_all(self, works: Iterable[Examination | Script]) -> list[Report]:
        """The reports of many programs, in their order, as many at once as there are workers."""
        return list(self._executor().map(self.run, works))

    def _tried(self, work: Examination | Script) -> Report:
        with self._turns:
            try:
                worker = self._taken()
                try:
                    report = worker.run(work)
                except BaseException:
                    worker.close()
                    raise
            except (WorkerFailed, OSError) as error:
                return Report("error", str(error))
            with self._lock:
                self._free.append(worker)
            return report

    def _taken(self) -> Worker:
        """The worker that was used last, or a new one."""
        with self._lock:
            if self._free:
                return self._free.pop()
            number = next(self._numbers)
        return Worker(number, self.limits, self._packages, namespaces=self._namespaces)

    def _executor(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self.workers, thread_name_prefix="sandbox")
            return self._threads

    def close(self) -> None:
        """End all free workers; those at work end with this process. The sandbox can be used again."""
        with self._lock:
            free, self._free = self._free, []
        for worker in free:
            worker.close()

    def _abandon(self) -> None:
        """In a forked child: its parent's workers are not its own."""
        for worker in self._free:
            worker.abandon()
        self._reset()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@cache
def shared_sandbox() -> Sandbox:
    """The sandbox of this process, with the default limits. Raises `PrerequisiteError` below the floor."""
    return Sandbox()
