"""Workers and their programs end with the process they belong to, however that ends, and failures of a worker heal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from code_boxes import require_sandbox
from hostility import descendants

from collabsim.sandbox.report import Examination
from collabsim.sandbox.worker import START, Worker, WorkerFailed
from collabsim.sandbox.worker_pool import Sandbox

WORK = Examination("def f(x):\n    return x", "assert f(1) == 1", "f")
PROGRAM = Path(__file__).parent / "sandbox_program.py"


@pytest.fixture(autouse=True)
def _floor():
    require_sandbox()


def gone(pid: int) -> bool:
    """Whether a process has ended (a zombie that nobody waits for has)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def soon(condition, seconds: float = 20.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return bool(condition())


@pytest.mark.parametrize(
    ("end", "isolation"),
    [
        *((end, "namespaces") for end in ("kill", "interrupt", "terminate", "raise", "return")),
        *((end, "floor") for end in ("kill", "interrupt")),
    ],
)
def test_no_orphan_and_no_folder_is_left_however_the_process_ends(end, isolation):
    told = end if end in ("raise", "return") else "wait"
    command = [sys.executable, str(PROGRAM), told, isolation]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        workers = json.loads(process.stdout.readline())
        pids = [pid for worker in workers for pid in (worker["pid"], *descendants(worker["pid"]))]
        numbers = {"kill": signal.SIGKILL, "interrupt": signal.SIGINT, "terminate": signal.SIGTERM}
        if end in numbers:
            assert len(pids) >= 6  # two workers, each with a program and its tests
            process.send_signal(numbers[end])
        process.wait(timeout=30)
    assert soon(lambda: all(map(gone, pids)))
    assert soon(lambda: not any(os.path.exists(worker["root"]) for worker in workers))


@pytest.mark.parametrize("namespaces", [True, False])
def test_programs_end_with_a_worker_that_is_killed(namespaces):
    worker = Worker(1, Sandbox(workers=1).limits, (), namespaces=namespaces)
    pids = descendants(worker.pid)
    os.kill(worker.pid, signal.SIGKILL)
    assert soon(lambda: all(map(gone, pids)))
    with pytest.raises(WorkerFailed):
        worker.run(WORK)
    worker.close()


def test_a_worker_that_died_is_replaced():
    with Sandbox(workers=1) as sandbox:
        assert sandbox.run(WORK).ending == "passed"
        first = sandbox._free[0].pid
        os.kill(first, signal.SIGKILL)
        assert soon(lambda: gone(first))
        assert sandbox.run(WORK).ending == "passed"
        assert sandbox._free[0].pid != first


def test_a_program_that_is_killed_from_outside_is_an_error_and_not_wrong():
    sleeper = Examination("import time\ndef f(x):\n    time.sleep(600)", "f(1)", "f")
    worker = Worker(1, Sandbox(workers=1).limits, (), namespaces=False)

    def kill() -> None:
        assert soon(lambda: len(descendants(worker.pid)) == 2)
        time.sleep(0.3)
        os.kill(min(descendants(worker.pid)), signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    report = worker.run(sleeper)
    thread.join()
    worker.close()
    assert report.ending == "error"


def test_workers_that_cannot_start_are_an_error_that_says_so(monkeypatch):
    monkeypatch.setattr("collabsim.sandbox.worker.START", START.replace("main()", "sys.exit(3)"))
    report = Sandbox(workers=1).run(WORK)
    assert report.ending == "error"
    assert report.reason


def test_a_closed_sandbox_can_be_used_again():
    sandbox = Sandbox(workers=1)
    assert sandbox.run(WORK).ending == "passed"
    sandbox.close()
    assert sandbox.run(WORK).ending == "passed"
    sandbox.close()


def test_a_forked_child_has_a_sandbox_of_its_own():
    with Sandbox(workers=1) as sandbox:
        assert sandbox.run(WORK).ending == "passed"
        child = os.fork()
        if child == 0:
            passed = False
            try:
                passed = sandbox.run(WORK).ending == "passed"
                sandbox.close()
            finally:
                os._exit(0 if passed else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert sandbox.run(WORK).ending == "passed"
