"""The checks of what programs leave behind find it."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid

import pytest
from processes import left_in_shared_memory, marked, shared_memory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and /dev/shm")
BLOCK = "from multiprocessing import resource_tracker, shared_memory as s; b = s.SharedMemory(create=True, size=64)\n"
FORGET = "resource_tracker.unregister(b._name, 'shared_memory'); print(b.name, flush=True)\n"


def start(program, **environment):
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def test_a_block_is_left_once_its_program_has_ended_without_freeing_it():
    before = shared_memory()
    with start(BLOCK + FORGET + "input(); b.close()") as process:
        name = process.stdout.readline().strip()
        assert name in shared_memory() - before
        assert name not in left_in_shared_memory(before)
        process.communicate("\n")
    assert name in left_in_shared_memory(before)
    os.unlink(f"/dev/shm/{name}")
    assert name not in left_in_shared_memory(before)


def test_processes_are_found_by_their_mark_while_they_run():
    mark = uuid.uuid4().hex
    with start("print(1, flush=True); input()", MARK=mark) as process:
        process.stdout.readline()
        assert marked(mark) == {process.pid}
        process.communicate("\n")
    assert marked(mark) == set()
