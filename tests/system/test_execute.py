"""Many runs at a time: how many, in which order they come back, and how all of it ends."""

import asyncio
from dataclasses import dataclass, field
from functools import partial

import pytest
from collabsim.graphs.majority_vote import majority_vote
from scripted import Scripted

from collabsim import System, make_item
from collabsim.context import Recorder
from collabsim.episode import Episode
from collabsim.errors import CollabsimError, ConfigError, StoreError
from collabsim.loop import run_sync
from collabsim.protocols import protocol
from collabsim.system.execute import RunRequest, call_all, execute, run_all
from collabsim.system.fitting import afit

ITEM = make_item("What is 2 + 3?", "5")
ITEMS = [make_item(f"What is {k} + 1?", str(k + 1)) for k in range(6)]


@dataclass
class Watched:
    """Stands in for a system: a run goes on until `gates` lets its seed pass, and all runs are watched."""

    gates: dict[int, asyncio.Event] = field(default_factory=dict)
    errors: dict[int, BaseException] = field(default_factory=dict)
    under_way: set[int] = field(default_factory=set)
    most: int = 0
    started: list[int] = field(default_factory=list)
    cleaned: list[int] = field(default_factory=list)

    async def arun(self, item, coalition=None, *, run_seed=0, **_how):
        self.started.append(run_seed)
        self.under_way.add(run_seed)
        self.most = max(self.most, len(self.under_way))
        try:
            if run_seed in self.gates:
                await self.gates[run_seed].wait()
            if run_seed in self.errors:
                raise self.errors[run_seed]
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # clean-up takes its time, and is waited for
            self.cleaned.append(run_seed)
            raise
        finally:
            self.under_way.discard(run_seed)
        return Episode(item.id, frozenset(coalition or ()), run_seed, 0, (), 1.0, None, (), None, 0.0)


class Line:
    """Requests without end in sight, and how many were taken."""

    def __init__(self, count):
        self.count, self.taken = count, 0

    def __iter__(self):
        for seed in range(self.count):
            self.taken += 1
            yield RunRequest(ITEM, run_seed=seed)


def closed(*seeds):
    return {seed: asyncio.Event() for seed in seeds}


async def until(condition):
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0)
    pytest.fail("it never came to it")


async def others():
    """Tasks beside this test's own."""
    return asyncio.all_tasks() - {asyncio.current_task()}


def ignore(_finished):
    pass


# ---- how many ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("concurrency", [1, 3, 50])
async def test_so_many_runs_are_in_flight_and_never_more(concurrency):
    system = Watched(closed(*range(20)))
    work = asyncio.create_task(execute(system, Line(20), ignore, concurrency=concurrency))
    await until(lambda: len(system.under_way) == min(concurrency, 20))
    for gate in system.gates.values():
        await asyncio.sleep(0)
        gate.set()
    await work
    assert system.most == min(concurrency, 20)
    assert sorted(system.started) == list(range(20))


async def test_a_million_requests_are_taken_one_by_one():
    system, line, delivered = Watched(), Line(10**6), []

    def deliver(finished):
        delivered.append(finished.request.run_seed)
        assert line.taken <= len(delivered) - 1 + 4
        if len(delivered) == 100:
            raise StoreError("enough")

    with pytest.raises(StoreError):
        await execute(system, line, deliver, concurrency=4)
    assert len(delivered) == 100
    assert line.taken <= 100 + 4


async def test_nothing_is_taken_while_no_run_ends():
    system, line = Watched(closed(*range(4))), Line(10**6)
    work = asyncio.create_task(execute(system, line, ignore, concurrency=4))
    await until(lambda: len(system.under_way) == 4)
    for _ in range(20):
        await asyncio.sleep(0)
    assert line.taken == 4
    work.cancel()
    await asyncio.wait([work])


async def test_runs_that_never_wait_take_turns_with_other_tasks():
    turns = 0

    async def other():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await execute(Watched(), Line(200), ignore, concurrency=1)
    task.cancel()
    assert turns >= 100


@pytest.mark.parametrize("concurrency", [0, -1])
async def test_a_concurrency_below_one_is_refused(concurrency):
    with pytest.raises(ConfigError, match="at least 1 run at a time"):
        await execute(Watched(), Line(3), ignore, concurrency=concurrency)


async def test_runs_that_belong_together_are_made_together_and_count_as_one():
    system = Watched(closed(*range(8)))
    together = [tuple(RunRequest(ITEM, run_seed=4 * first + k) for k in range(4)) for first in range(2)]
    work = asyncio.create_task(execute(system, together, ignore, concurrency=1))
    await until(lambda: system.under_way == {0, 1, 2, 3})
    for seed in range(3):
        system.gates[seed].set()
    await asyncio.sleep(0.01)
    assert system.under_way == {3}
    for gate in system.gates.values():
        gate.set()
    await work
    assert sorted(system.started) == list(range(8))


# ---- what comes back --------------------------------------------------------------------------------------------------


async def test_a_run_is_delivered_with_its_request_as_soon_as_it_has_ended_whatever_its_place():
    system, delivered = Watched(closed(0, 1, 2)), []
    requests = [RunRequest(ITEM, run_seed=seed, key=f"run {seed}") for seed in range(3)]
    work = asyncio.create_task(execute(system, requests, delivered.append, concurrency=3))
    for seed in (2, 0, 1):
        system.gates[seed].set()
        await until(lambda seed=seed: bool(delivered) and delivered[-1].request.run_seed == seed)
    await work
    assert [finished.request.key for finished in delivered] == ["run 2", "run 0", "run 1"]
    assert all(finished.request is requests[finished.episode.run_seed] for finished in delivered)


async def test_a_list_is_in_the_order_of_the_requests():
    system = Watched(closed(0))
    work = asyncio.create_task(run_all(system, Line(5), concurrency=5))
    await until(lambda: len(system.started) == 5 and system.under_way == {0})
    system.gates[0].set()
    assert [finished.episode.run_seed for finished in await work] == list(range(5))


async def test_a_request_says_all_that_a_run_is_told():
    class Noted(Recorder):
        pass

    system = System("majority_vote", {"a": Scripted("a", "Answer: 5"), "b": Scripted("b", "Answer: 4")})
    how = {"run_seed": 3, "replica": 2, "replicas": {"a": 7}}
    requests = [
        RunRequest(ITEM, **how),
        RunRequest(ITEM, frozenset("b"), **how),
        RunRequest(ITEM, seat="a", recorder=Noted),
    ]
    every, some, own = await run_all(system, requests)
    for finished, coalition in ((every, None), (some, ["b"])):
        recorder = Recorder()
        alike = await system.arun(ITEM, coalition, **how, recorder=recorder)
        assert [call.key for call in finished.episode.calls] == [call.key for call in alike.calls]
        assert (finished.episode.present, finished.episode.outcome) == (alike.present, alike.outcome)
        assert finished.recorder.calls == list(finished.episode.calls)
    assert own.episode.outcome == (await system.alone_on(ITEM, "a")).outcome == 1.0
    assert type(own.recorder) is Noted


async def test_calls_that_are_no_runs_are_bounded_and_come_back_in_order():
    under_way, most = 0, 0

    async def call(number):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.01 if number == 0 else 0)
        under_way -= 1
        return number * number

    assert await call_all(call, range(9), concurrency=3) == [number * number for number in range(9)]
    assert most == 3
    assert await call_all(call, []) == []


# ---- how it ends ------------------------------------------------------------------------------------------------------


async def test_an_error_that_meets_every_run_ends_all_of_them_and_is_raised_as_it_is():
    cause = ValueError("why")
    error = ConfigError("the same everywhere")
    error.__cause__ = cause
    system = Watched(closed(0, 1, 2, 4), {3: error})
    line = Line(10**6)
    with pytest.raises(ConfigError) as caught:
        await execute(system, line, ignore, concurrency=5)
    assert caught.value is error
    assert caught.value.__cause__ is cause
    assert sorted(system.cleaned) == [0, 1, 2, 4]
    assert line.taken == 5
    assert not system.under_way
    assert not await others()


async def test_no_run_is_started_after_the_first_error():
    class Telling(Watched):
        async def arun(self, item, coalition=None, *, run_seed=0, **how):
            if run_seed == 7:
                taken.append(line.taken)
            return await super().arun(item, coalition, run_seed=run_seed, **how)

    line, taken = Line(10**6), []
    with pytest.raises(ConfigError):  # the others never wait, so they could go on before they are cancelled
        await execute(Telling(errors={7: ConfigError("no")}), line, ignore, concurrency=4)
    assert taken == [line.taken]


@pytest.mark.parametrize("error", [StoreError("full"), KeyboardInterrupt(), ExceptionGroup("own", [ValueError()])])
def test_what_the_delivery_raises_ends_all_runs_too(error):
    system = Watched(closed(*range(1, 4)))

    def deliver(_finished):
        raise error

    with pytest.raises(type(error)) as caught:  # on a loop that outlives an interrupt, like all synchronous callers
        run_sync(execute(system, Line(100), deliver, concurrency=4))
    assert caught.value is error
    assert sorted(system.cleaned) == [1, 2, 3]


async def test_an_error_in_the_making_of_the_work_ends_all_runs():
    def broken():
        yield RunRequest(ITEM, run_seed=0)
        yield RunRequest(ITEM, run_seed=1)
        raise StoreError("the plan cannot be read")

    system = Watched(closed(0))
    with pytest.raises(StoreError, match="cannot be read"):
        await execute(system, broken(), ignore, concurrency=2)
    assert not system.under_way
    assert not await others()


async def test_one_error_among_runs_that_belong_together_is_raised_as_it_is():
    error = ConfigError("the same everywhere")
    system = Watched(closed(0, 2, 3), {1: error})
    together = [tuple(RunRequest(ITEM, run_seed=seed) for seed in pair) for pair in ((0, 1), (2, 3))]
    with pytest.raises(ConfigError) as caught:
        await execute(system, together, ignore, concurrency=2)
    assert caught.value is error
    assert sorted(system.cleaned) == [0, 2, 3]


async def test_cancelling_the_caller_cancels_all_runs_and_waits_for_their_end():
    system = Watched(closed(*range(5)))
    work = asyncio.create_task(execute(system, Line(10**6), ignore, concurrency=5))
    await until(lambda: len(system.under_way) == 5)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert sorted(system.cleaned) == list(range(5))
    assert not await others()


async def test_a_run_that_catches_its_cancellation_is_the_last_of_its_worker():
    class Stubborn(Watched):
        async def arun(self, item, coalition=None, *, run_seed=0, **how):
            try:
                return await super().arun(item, coalition, run_seed=run_seed, **how)
            except asyncio.CancelledError:
                return Episode(item.id, frozenset(), run_seed, 0, (), 0.0, None, (), None, 0.0)

    system = Stubborn(closed(0, 1, 2))
    work = asyncio.create_task(execute(system, Line(100), ignore, concurrency=3))
    await until(lambda: len(system.under_way) == 3)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert system.started == [0, 1, 2]


async def test_a_run_that_is_cancelled_from_inside_is_an_error_and_not_lost():
    system = Watched(errors={2: asyncio.CancelledError()})
    with pytest.raises(CollabsimError, match="cancelled from inside"):
        await execute(system, Line(5), ignore, concurrency=2)
    with pytest.raises(CollabsimError, match="cancelled from inside"):
        await run_all(system, Line(5), concurrency=1)


async def test_a_call_that_fails_cancels_the_others():
    cancelled = []

    async def call(number):
        if number == 2:
            raise ValueError("no")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(number)
            raise

    with pytest.raises(ValueError, match="no"):
        await call_all(call, range(9), concurrency=3)
    assert sorted(cancelled) == [0, 1]


# ---- what is fitted on dev ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cascade", "prompt_router", "trained_router", "graph_router"])
async def test_a_fit_makes_no_more_runs_at_a_time_than_it_is_allowed(name):
    now, most = 0, 0

    class Slow(Scripted):
        async def areply(self, request):
            nonlocal now, most
            now += 1
            most = max(most, now)
            await asyncio.sleep(0.002)
            now -= 1
            return await super().areply(request)

    members = {seat: Slow(seat, "Answer: 5") for seat in ("a", "b")}
    fitted = await afit(System(name, members), ITEMS, concurrency=2)
    assert fitted.dev_items == len(ITEMS)
    assert most == 2


async def test_a_fit_that_takes_no_concurrency_is_called_as_before():
    plain, bounded = [], []

    def old(system, dev_items, seed):
        plain.append((len(dev_items), seed))

    async def new(system, dev_items, seed, *, concurrency=100):
        bounded.append((len(dev_items), seed, concurrency))

    for fit in (old, new, partial(new, concurrency=9)):
        made = protocol(name="voted", fit=fit)(majority_vote.build)
        await afit(System(made, {"a": Scripted("a", "Answer: 5")}), ITEMS, seed=3, concurrency=7)
    assert plain == [(6, 3)]
    assert bounded == [(6, 3, 7), (6, 3, 7)]
