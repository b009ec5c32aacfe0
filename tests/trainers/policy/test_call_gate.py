"""The gate: calls under way end before it closes, later ones wait until it opens."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from collabsim.trainers.policy.call_gate import Gate

from collabsim.errors import CallError

SECONDS = 10


async def until(condition):
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.002)
    raise AssertionError("waited in vain")


def closing(gate, events, hold):
    with gate.closed(SECONDS):
        events.append("closed")
        hold.wait(SECONDS)
        events.append("open")


async def test_closing_waits_for_calls_under_way_and_holds_back_new_ones():
    gate, events, hold, end = Gate(), [], threading.Event(), asyncio.Event()

    async def call(name, ending):
        async with gate.call():
            events.append(f"{name} in")
            await ending.wait()
            events.append(f"{name} out")

    first = asyncio.create_task(call("first", end))
    await until(lambda: events == ["first in"])
    with ThreadPoolExecutor() as threads:
        closed = threads.submit(closing, gate, events, hold)
        await until(lambda: gate._shut)
        second = asyncio.create_task(call("second", end))
        await asyncio.sleep(0.02)
        assert events == ["first in"]
        end.set()
        await until(lambda: "closed" in events)
        await asyncio.sleep(0.02)
        assert events == ["first in", "first out", "closed"]
        hold.set()
        await asyncio.gather(first, second)
        closed.result(SECONDS)
    assert events[3:] == ["open", "second in", "second out"]


async def test_calls_that_do_not_end_are_an_error_and_the_gate_opens_again():
    gate, end = Gate(), asyncio.Event()

    async def call():
        async with gate.call():
            await end.wait()

    running = asyncio.create_task(call())
    await until(lambda: gate._running == 1)

    def close():
        with gate.closed(0.01):
            raise AssertionError("it closed on a running call")

    with pytest.raises(CallError, match="1 still run"):
        await asyncio.to_thread(close)
    end.set()
    await running
    await asyncio.wait_for(call(), SECONDS)


async def test_a_call_cancelled_at_the_gate_is_not_counted():
    gate, events, hold = Gate(), [], threading.Event()

    async def call():
        async with gate.call():
            events.append("in")

    with ThreadPoolExecutor() as threads:
        closed = threads.submit(closing, gate, events, hold)
        await until(lambda: "closed" in events)
        waiting = asyncio.create_task(call())
        await until(lambda: gate._waiting)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        hold.set()
        closed.result(SECONDS)
    assert "in" not in events
    with gate.closed(0.01):
        pass


async def test_a_call_that_fails_leaves_the_gate():
    gate = Gate()
    with pytest.raises(ValueError, match="bad"):
        async with gate.call():
            raise ValueError("bad")
    with gate.closed(0.01):
        pass


def test_an_error_inside_opens_the_gate_for_callers_on_other_loops():
    gate = Gate()
    with pytest.raises(ValueError, match="bad"), gate.closed(SECONDS):
        raise ValueError("bad")

    async def call():
        async with gate.call():
            return "in"

    assert asyncio.run(call()) == "in"
