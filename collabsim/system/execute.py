"""The one place that starts many runs: descriptions of runs go in, episodes come out, N at a time.

In: a system, and `RunRequest`s from any iterator. Out: one `FinishedRun` a request, in the order in which the runs end, or
a list in the order of the requests. A request says what is run and holds no coroutine, so that the same requests can be
given to something that runs them elsewhere: in lockstep, in worker processes, on other machines. Such an executor takes
the place of `execute` and keeps its promises:

- Work is taken when there is room for it. A generator of millions of requests is never held as a list, and no request is
  taken before an earlier one was delivered.
- A run that fails is an episode like any other. What is raised instead (`running.ABORTS`, or an error of `deliver`) would
  meet every run alike: the first such error ends all of it, and is raised as it is, not in a group.
- When it returns or raises, also because its caller was cancelled, nothing that it started is still running.

Left out on purpose: what outcomes are kept for, and in which order runs are best made; that is the caller's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, cast

from collabsim.context import Recorder
from collabsim.episode import Episode
from collabsim.errors import CollabsimError, ConfigError
from collabsim.item import Item
from collabsim.system.system import System

T = TypeVar("T")
R = TypeVar("R")

CONCURRENCY = 100
"""Runs in flight where nothing else is said."""
CANCELLED_INSIDE = (
    "a run was cancelled from inside: a model or a node raised CancelledError, and nobody had cancelled the run; was the "
    "model closed while it was in use?"
)


@dataclass(frozen=True, slots=True, eq=False)
class RunRequest:
    """One run of a system, described."""

    item: Item
    coalition: frozenset[str] | None = None
    """Names of the players that are present; None: all."""
    seat: str | None = None
    """The seat whose own answer is wanted, outside the protocol and any coalition; None: a run of the protocol."""
    run_seed: int = 0
    replica: int = 0
    replicas: Mapping[str, int] | None = None
    recorder: Callable[[], Recorder] = Recorder
    """Makes the recorder of this run, where the run is made."""
    key: Any = None
    """What the caller knows the run by; handed back and never looked at."""


class FinishedRun(NamedTuple):
    """A run that has ended."""

    request: RunRequest
    episode: Episode
    recorder: Recorder


Work: TypeAlias = RunRequest | tuple[RunRequest, ...]
"""One run, or several that are made together and count once towards the concurrency: they share what is generated."""
Deliver: TypeAlias = Callable[[FinishedRun], None]
"""Called for every run as soon as it has ended; the place of the run is free for another when this returns."""


async def execute(system: System, work: Iterable[Work], deliver: Deliver, *, concurrency: int = CONCURRENCY) -> None:
    """Make all runs of `work`, at most `concurrency` at a time, and deliver each as soon as it has ended.

    Raises the first error that is not a failed run's: one of `running.ABORTS`, or what `work` or `deliver` raised.
    `ConfigError` for a concurrency below 1.
    """

    async def place(wanted: Work) -> None:
        if isinstance(wanted, RunRequest):
            deliver(await _run(system, wanted))
        else:
            await _Workers(one, wanted, max(1, len(wanted))).run()

    async def one(request: RunRequest) -> None:
        deliver(await _run(system, request))

    await _Workers(place, work, concurrency).run()


async def run_all(
    system: System, requests: Iterable[RunRequest], *, concurrency: int = CONCURRENCY
) -> list[FinishedRun]:
    """The same as a list in the order of the requests, for work whose every episode fits in memory."""
    return await call_all(partial(_run, system), requests, concurrency=concurrency)


async def call_all(
    call: Callable[[T], Awaitable[R]], arguments: Iterable[T], *, concurrency: int = CONCURRENCY
) -> list[R]:
    """`call` of every argument, at most `concurrency` at a time; results in the order of the arguments.

    For calls that are not runs of a system, such as `reply_of_seat`. The first error cancels the other calls and is raised.
    """
    results: dict[int, R] = {}

    async def one(numbered: tuple[int, T]) -> None:
        number, argument = numbered
        results[number] = await call(argument)

    await _Workers(one, enumerate(arguments), concurrency).run()
    return [results[number] for number in range(len(results))]


async def _run(system: System, request: RunRequest) -> FinishedRun:
    recorder = request.recorder()
    how: dict[str, Any] = {"run_seed": request.run_seed, "replica": request.replica, "replicas": request.replicas}
    if request.seat is not None:
        episode = await system.alone_on(request.item, request.seat, **how, recorder=recorder)
    else:
        episode = await system.arun(request.item, request.coalition, **how, recorder=recorder)
    return FinishedRun(request, episode, recorder)


class _Workers(Generic[T]):
    """Workers that each take the next entry when they are done with their last one."""

    def __init__(self, do: Callable[[T], Awaitable[None]], work: Iterable[T], concurrency: int) -> None:
        if concurrency < 1:
            raise ConfigError(f"concurrency: expected at least 1 run at a time, got {concurrency}")
        self.do, self.work, self.concurrency = do, iter(work), concurrency
        self.failed = False

    async def run(self) -> None:
        """All of the work. Raises the first error of any worker when none is running any more."""
        error: BaseException | None = None
        try:
            async with asyncio.TaskGroup() as group:
                for entry in islice(self.work, self.concurrency):
                    group.create_task(self._worker(entry))
        except BaseExceptionGroup as errors:
            error = errors.exceptions[0]
        if error is not None:  # raised out here, it keeps the cause and the context that it has
            raise error

    async def _worker(self, first: T) -> None:
        own = cast("asyncio.Task[None]", asyncio.current_task())
        try:
            for entry in chain((first,), self.work):
                await self.do(entry)
                # A run served from memory never waits; without this pause one worker would do all of them in one go.
                await asyncio.sleep(0)
                if self.failed or own.cancelling():  # code of users may have caught the cancellation
                    return
        except asyncio.CancelledError as cancelled:
            self.failed = True
            if own.cancelling():
                raise
            raise CollabsimError(CANCELLED_INSIDE) from cancelled
        except BaseException:
            self.failed = True
            raise
