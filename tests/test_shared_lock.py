"""Who may use the room for one merged model, and when."""

import asyncio

import pytest

from collabsim.locks import SharedLock


async def test_equal_keys_share_the_room_and_others_wait():
    room, log = SharedLock(), []

    async def use(key, steps):
        async with room.hold(key):
            log.append(f"+{key}")
            for _ in range(steps):
                await asyncio.sleep(0)
            log.append(f"-{key}")

    await asyncio.gather(use("a", 9), use("b", 1), use("a", 3), use("b", 4), use("c", 1))
    assert [entry[1] for entry in log] == ["a"] * 4 + ["b"] * 4 + ["c"] * 2


async def test_a_waiter_that_gives_up_blocks_nobody():
    room = SharedLock()
    async with room.hold("a"):
        waiting = asyncio.create_task(room.hold("b").__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with asyncio.timeout(1), room.hold("c"):
        pass


async def test_an_error_inside_frees_the_room():
    room = SharedLock()
    with pytest.raises(ValueError, match="inside"):
        async with room.hold("a"):
            raise ValueError("inside")
    async with asyncio.timeout(1), room.hold("b"):
        pass


def test_the_room_serves_several_event_loops():
    room = SharedLock()

    async def use(key):
        async with room.hold(key):
            await asyncio.sleep(0)

    for key in ("a", "b", "a"):
        asyncio.run(use(key))
