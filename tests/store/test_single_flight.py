import asyncio
import gc
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor

import pytest
from store_models import Speaker, question

from collabsim.errors import CallError
from collabsim.loop import run_sync
from collabsim.store import GenerationStore


@pytest.fixture(params=["file", "memory"])
def store(request, tmp_path):
    with GenerationStore(tmp_path / "generations.sqlite" if request.param == "file" else None) as store:
        yield store


async def started(speaker):
    assert await asyncio.to_thread(speaker.started.wait, 5)


def ask(store, speaker, **how):
    return asyncio.create_task(store.fetch(speaker, question(**how)))


async def test_fifty_equal_requests_at_once_make_one_generation(store):
    speaker = Speaker(closed=True)
    asks = [ask(store, speaker) for _ in range(50)]
    await started(speaker)
    speaker.open.set()
    fetched = await asyncio.gather(*asks)
    assert (speaker.calls, store.generated, store.reused) == (1, 1, 49)
    assert {one.reply.text for one in fetched} == {"call 1 says 2 + 2?"}
    assert sum(not one.reused for one in fetched) == 1


def test_fifty_threads_with_loops_of_their_own_make_one_generation(store):
    speaker, gate = Speaker(closed=True), threading.Barrier(51)

    def ask_in_own_loop(_):
        gate.wait()
        return asyncio.run(store.fetch(speaker, question()))

    with ThreadPoolExecutor(50) as pool:
        asks = [pool.submit(ask_in_own_loop, index) for index in range(50)]
        gate.wait()
        assert speaker.started.wait(5)
        speaker.open.set()
        fetched = [one.result(timeout=10) for one in asks]
    assert (speaker.calls, store.generated, store.reused) == (1, 1, 49)
    assert sum(not one.reused for one in fetched) == 1


def test_requests_from_the_background_loop_and_from_others_meet(store):
    speaker = Speaker(closed=True)

    async def both():
        outside = asyncio.create_task(asyncio.to_thread(lambda: asyncio.run(store.fetch(speaker, question()))))
        inside = ask(store, speaker)
        await started(speaker)
        speaker.open.set()
        return await asyncio.gather(outside, inside)

    first, second = run_sync(both())
    assert first.reply == second.reply
    assert speaker.calls == 1


async def test_a_generation_that_lands_while_another_asker_reads_the_disk_is_not_repeated(tmp_path, monkeypatch):
    speaker = Speaker()
    with GenerationStore(tmp_path / "generations.sqlite") as store:

        def slow_look(ask):
            monkeypatch.undo()
            with ThreadPoolExecutor(1) as pool:
                pool.submit(asyncio.run, store.fetch(speaker, question())).result()
            # and nothing is returned, as nothing was on the disk when this look began

        monkeypatch.setattr(store, "_reuse_from_disk", slow_look)
        assert (await store.fetch(speaker, question())).reused
    assert (speaker.calls, store.generated, store.reused) == (1, 1, 1)


async def test_different_requests_are_generated_side_by_side(store):
    speaker = Speaker(closed=True)
    asks = [ask(store, speaker, seed=seed) for seed in range(10)]
    while speaker.calls < 10:
        await asyncio.sleep(0.001)
    speaker.open.set()
    await asyncio.gather(*asks)
    assert speaker.calls == 10


async def test_cancelling_the_first_asker_leaves_the_generation_to_the_others(store):
    speaker = Speaker(closed=True)
    first = ask(store, speaker)
    await started(speaker)
    second = ask(store, speaker)
    await asyncio.sleep(0.01)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    speaker.open.set()
    assert (await second).reply.text == "call 1 says 2 + 2?"
    assert speaker.calls == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_an_asker_whose_loop_is_closed_under_it_leaves_the_generation_to_the_others(store):
    speaker = Speaker(closed=True)
    abandoned = asyncio.new_event_loop()
    task = abandoned.create_task(store.fetch(speaker, question()))
    task._log_destroy_pending = False
    while not speaker.started.is_set():
        abandoned.run_until_complete(asyncio.sleep(0.001))
    abandoned.close()

    async def second():
        other = ask(store, speaker)
        await asyncio.sleep(0.01)
        speaker.open.set()
        return await other

    assert asyncio.run(second()).reply.text == "call 1 says 2 + 2?"
    assert speaker.calls == 1


async def test_a_generation_that_nobody_waits_for_any_more_is_stopped_and_asked_anew_later(store):
    speaker = Speaker(closed=True)
    asks = [ask(store, speaker) for _ in range(3)]
    await started(speaker)
    await asyncio.sleep(0.01)
    for one in asks:
        one.cancel()
    await asyncio.gather(*asks, return_exceptions=True)
    assert await asyncio.to_thread(speaker.cancelled.wait, 5)
    speaker.open.set()
    assert (await store.fetch(speaker, question())).reply.text == "call 2 says 2 + 2?"


async def test_a_failure_reaches_all_who_wait_and_the_next_ask_tries_again(store):
    speaker = Speaker(closed=True, failures=1)
    asks = [ask(store, speaker) for _ in range(50)]
    await started(speaker)
    await asyncio.sleep(0.01)
    speaker.open.set()
    failures = await asyncio.gather(*asks, return_exceptions=True)
    assert {str(failure) for failure in failures} == {"line dropped at call 1"}
    assert (store.generated, store.reused) == (0, 0)
    assert (await store.fetch(speaker, question())).reply.text.startswith("call 2")


async def test_a_shared_failure_shows_each_waiter_a_traceback_of_its_own_length(store):
    speaker = Speaker(closed=True, failures=1)
    lengths = []

    async def waiter():
        try:
            await store.fetch(speaker, question())
        except ConnectionError as error:
            lengths.append(len(traceback.extract_tb(error.__traceback__)))

    asks = [asyncio.create_task(waiter()) for _ in range(20)]
    await started(speaker)
    await asyncio.sleep(0.01)
    speaker.open.set()
    await asyncio.gather(*asks)
    assert len(lengths) == 20
    assert len(set(lengths)) == 1


@pytest.mark.parametrize("ending", [SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError()])
@pytest.mark.parametrize("bypass", [False, True])
async def test_a_model_that_is_stopped_is_a_failed_call_and_not_the_end_of_the_asker(store, ending, bypass):
    class Stopped(Speaker):
        async def areply(self, request):
            raise ending

    with pytest.raises(CallError, match=type(ending).__name__):
        await store.fetch(Stopped(), question(), bypass=bypass)
    assert not (await store.fetch(Speaker(), question())).reused


async def test_a_generation_is_not_collected_while_it_waits(store):
    class Idle(Speaker):
        async def areply(self, request):
            self.started.set()
            await asyncio.get_running_loop().create_future()  # nothing outside refers to this

    call = ask(store, Idle())
    await asyncio.sleep(0.05)
    gc.collect()
    assert not call.done()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
