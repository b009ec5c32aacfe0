"""Whole programs that use vLLM: they end in seconds, and leave no process, no shared memory and no noise behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from engines import requires
from tiny_vllm import vllm_folder

pytestmark = [requires("torch", "transformers", "vllm"), pytest.mark.slow]

PROGRAM = Path(__file__).with_name("vllm_program.py")
START_SECONDS, END_SECONDS = 180, 15
# Torch's own exit handlers (of torch._inductor) turn the usual code of an interrupted program into 1.
CODES = {"normal": {0}, "close": {0}, "cancel": {0}, "error": {1}, "wait": {1, -signal.SIGINT}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return vllm_folder(tmp_path_factory.mktemp("models") / "llama")


def marked(mark):
    """Ids of processes that have inherited `mark` in their environment."""
    found = set()
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in environment.read_bytes():
                found.add(int(environment.parent.name))
        except OSError:
            continue  # it has ended by now
    return found


def shared_memory():
    return {path.name for path in Path("/dev/shm").glob("*")}


def run(folder, driver, ending, **environment):
    """Run the program to its end; returns (exit code, output, errors, seconds from the end of its work, processes left)."""
    mark = f"collabsim-{uuid.uuid4().hex}"
    command = [sys.executable, str(PROGRAM), str(folder), driver, ending]
    surroundings = {**os.environ, "COLLABSIM_TEST": mark, **environment}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=surroundings, start_new_session=True
    )
    try:
        lines = []
        while (line := process.stdout.readline()) and line.strip() != "busy":
            lines.append(line)
        started = time.monotonic()
        if ending == "wait":
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes of the program
        output, errors = process.communicate(timeout=START_SECONDS)
        return process.returncode, "".join(lines) + output, errors, time.monotonic() - started, marked(mark)
    finally:
        for left in marked(mark):
            os.kill(left, signal.SIGKILL)


@pytest.mark.parametrize("ending", CODES)
def test_a_program_with_an_engine_inside_ends_in_seconds_and_leaves_nothing(folder, ending):
    before = shared_memory()
    code, output, errors, seconds, left = run(folder, "cpu", ending)
    assert code in CODES[ending], errors
    assert "answered 8 8" in output
    assert (left, shared_memory() - before) == (set(), set())
    assert ending == "cancel" or seconds < END_SECONDS
    assert ending != "cancel" or "others 5" in output
    assert ending != "close" or "failed CallError" in output


def test_nothing_is_printed_by_vllm(folder):
    _, output, errors, _, _ = run(folder, "cpu", "normal")
    assert output.split() == ["answered", "8", "8"]
    assert errors == ""


@pytest.mark.parametrize("ending", ["cancel", "close", "wait"])  # half a minute each
def test_a_program_with_an_engine_in_its_own_process_ends_in_seconds_and_leaves_nothing(folder, ending):
    before = shared_memory()
    code, output, errors, seconds, left = run(folder, "async", ending)
    assert code in CODES[ending], errors
    assert "answered 8 8" in output
    assert (left, shared_memory() - before) == (set(), set())
    assert ending == "cancel" or seconds < END_SECONDS
    assert ending != "cancel" or "others 5" in output
    assert ending != "close" or "failed CallError" in output
