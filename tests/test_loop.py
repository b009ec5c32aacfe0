import asyncio
import contextvars
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from collabsim.errors import CollabsimError
from collabsim.loop import background_loop, run_sync, submit


async def thread_name():
    return threading.current_thread().name


def test_all_work_shares_one_loop_in_one_thread():
    assert run_sync(thread_name()) == submit(thread_name()).result() == "collabsim-loop"
    assert background_loop() is background_loop()


def test_many_threads_that_come_first_start_one_loop():
    code = """
import threading
from collabsim.loop import background_loop
gate, loops = threading.Barrier(16), []
def ask():
    gate.wait()
    loops.append(background_loop())
threads = [threading.Thread(target=ask) for _ in range(16)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(len(set(loops)), sum(thread.name == "collabsim-loop" for thread in threading.enumerate()))
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "1 1\n"


def test_an_exception_reaches_the_synchronous_caller():
    async def fail():
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        run_sync(fail())


async def test_run_sync_works_where_a_loop_already_runs_as_in_a_notebook():
    assert run_sync(thread_name()) == "collabsim-loop"


def test_run_sync_on_the_background_loop_is_an_error_and_not_a_deadlock():
    async def inner():
        return 1

    async def outer():
        return run_sync(inner())

    with pytest.raises(CollabsimError, match="await the asynchronous twin"):
        submit(outer()).result(timeout=5)


def test_an_interrupt_cancels_the_coroutine_and_waits_for_its_clean_up():
    steps = []

    async def work():
        steps.append("started")
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.05)
            steps.append("cleaned up")

    with pytest.raises(KeyboardInterrupt):
        run_sync(work())
    assert steps == ["started", "cleaned up"]


def test_an_interrupt_of_a_synchronous_call_inside_asyncio_run_ends_it_too():
    """asyncio.run turns Ctrl-C into a cancellation of its task, which blocks its thread: nothing happened for minutes."""
    steps = []

    async def work():
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            await asyncio.sleep(5)
            steps.append("went on")
        finally:
            steps.append("cleaned up")

    async def main():
        run_sync(work())

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert steps == ["cleaned up"]


def test_a_task_that_exits_does_not_end_the_loop_for_the_others():
    async def leave():
        raise SystemExit(3)

    neighbour = submit(asyncio.sleep(0.05, "alive"))
    with pytest.raises(SystemExit):
        run_sync(leave())
    assert neighbour.result(timeout=5) == "alive"
    assert run_sync(thread_name()) == "collabsim-loop"


def test_cancelling_a_submitted_future_cancels_its_coroutine():
    started, cancelled = threading.Event(), threading.Event()

    async def work():
        started.set()
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    future = submit(work())
    assert started.wait(5)
    future.cancel()
    assert cancelled.wait(5)


def test_context_variables_of_the_caller_are_seen():
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("set by the caller")

    async def read():
        return variable.get()

    assert run_sync(read()) == "set by the caller"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_gets_a_loop_of_its_own_and_the_parent_keeps_its():
    parents = background_loop()
    child = os.fork()
    if child == 0:
        signal.alarm(10)  # a deadlock ends the child with another status
        fresh = background_loop() is not parents and run_sync(asyncio.sleep(0.01, "fresh")) == "fresh"
        os._exit(0 if fresh else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert background_loop() is parents
    assert run_sync(asyncio.sleep(0.01, "still here")) == "still here"


def test_work_in_flight_is_cancelled_and_cleaned_up_at_exit_without_noise():
    code = """
import asyncio
from collabsim.loop import run_sync, submit
async def work():
    try:
        await asyncio.sleep(30)
    finally:
        print("cleaned up", flush=True)
future = submit(work())
run_sync(asyncio.sleep(0.05))
"""
    begun = time.monotonic()
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "cleaned up\n", "")
    assert time.monotonic() - begun < 10
