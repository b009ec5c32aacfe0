"""Whole programs that use vLLM: they end in seconds, and leave no process, no shared memory and no noise behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from tempfile import TemporaryFile

import pytest
from engines import requires
from processes import left_in_shared_memory, marked, shared_memory
from tiny_vllm import vllm_folder

# One group: programs that start or end meanwhile would be seen in /dev/shm.
pytestmark = [requires("torch", "transformers", "vllm"), pytest.mark.slow]

PROGRAM = Path(__file__).with_name("vllm_program.py")
START_SECONDS, END_SECONDS = 300, 60
# Torch's own exit handlers (of torch._inductor) turn the usual code of an interrupted program into 1.
CODES = {"close": {0}, "error": {1}, "wait": {1, -signal.SIGINT}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return vllm_folder(tmp_path_factory.mktemp("models") / "llama")


def run(folder, driver, ending):
    """Run the program to its end; returns (exit code, output, errors, seconds from the end of its work, processes left)."""
    mark = f"collabsim-{uuid.uuid4().hex}"
    command = [sys.executable, str(PROGRAM), str(folder), driver, ending]
    surroundings = {**os.environ, "COLLABSIM_TEST": mark}
    with TemporaryFile("w+") as said:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=said, text=True, env=surroundings, start_new_session=True
        )
        hanging = threading.Timer(START_SECONDS, os.killpg, (process.pid, signal.SIGKILL))
        hanging.start()
        try:
            lines, busy = [], time.monotonic()
            for line in process.stdout:
                lines.append(line)
                if line.strip() == "busy":
                    busy = time.monotonic()
                    if ending == "wait":
                        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes of the program
            code, seconds = process.wait(), time.monotonic() - busy
            said.seek(0)
            return code, "".join(lines), said.read(), seconds, marked(mark)
        finally:
            hanging.cancel()
            process.stdout.close()
            for left in marked(mark):
                os.kill(left, signal.SIGKILL)


def check(driver, ending, folder):
    """Run the program; returns what it wrote to both streams."""
    before = shared_memory()
    code, output, errors, seconds, left = run(folder, driver, ending)
    assert code in CODES[ending], errors
    assert "answered 8 8" in output
    assert (left, left_in_shared_memory(before)) == (set(), set())
    assert ending == "close" or seconds < END_SECONDS
    assert "atexit" not in errors
    return output, errors


@pytest.mark.parametrize("driver", ["cpu", "async"])
def test_a_program_that_cancels_and_closes_gets_the_other_replies_and_leaves_nothing(folder, driver):
    output, _ = check(driver, "close", folder)
    assert output.splitlines()[-2:] == ["others 5", "failed CallError"]


@pytest.mark.parametrize("driver", ["cpu", "async"])
def test_ctrl_c_ends_a_busy_program_in_seconds_and_leaves_nothing(folder, driver):
    check(driver, "wait", folder)


def test_an_error_ends_a_busy_program_in_seconds_and_leaves_nothing_and_vllm_prints_nothing(folder):
    output, errors = check("cpu", "error", folder)
    assert output.split() == ["loading", "answered", "8", "8", "busy"]
    assert errors.startswith("Traceback (most recent call last):\n")
    assert errors.count("Traceback") == 1
    assert errors.endswith("\nValueError: as the test wants it\n")
