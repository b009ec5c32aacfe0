"""A sweep of models on vLLM that is killed, then stopped by Ctrl-C, then finished, each time by the same command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import uuid
from pathlib import Path

import pytest
from command_line import command, in_a_process, kept_generations, rows, write_config
from engines import requires
from processes import left_in_shared_memory, marked, shared_memory
from tiny_folders import CHATML
from tiny_vllm import vllm_folder

from collabsim.store.codec import decode

pytestmark = [requires("torch", "transformers", "vllm"), pytest.mark.slow]

N_ITEMS = 12
SECONDS = 300
"""For one session on a busy machine: importing vLLM alone takes 10 to 60."""
SWEEP = ("sweep", "config.yaml", "--out", "run", "--store", "g.sqlite", "--json")


@pytest.fixture
def folder(work):
    """A vote of two tiny models on vLLM; four runs in flight, so that the first kill meets some that are committed."""
    pool = {}
    for number, name in enumerate(("first", "second")):
        weights = vllm_folder(work / name, seed=number, window=1024)
        (weights / "chat_template.jinja").write_text(CHATML)
        options = {"spec": str(weights), "engine": "vllm", "dtype": "float32", "kv_space_gib": 0.125}
        sampling = {"temperature": 0.8, "max_tokens": 48}
        pool[name] = {"model": "python:witness:local_member", "options": options, "sampling": sampling}
    items = [{"question": f"What is {k} plus {k + 3}?", "answer": str(2 * k + 3)} for k in range(N_ITEMS)]
    (work / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    write_config(work / "config.yaml", pool=pool, concurrency=4)
    return work


def around(folder, mark, **more):
    surroundings = {"PYTHONPATH": str(Path(__file__).parent), "WITNESS": str(folder / "asked.txt")}
    return {"cwd": folder, "env": {**os.environ, **surroundings, "COLLABSIM_TEST": mark, **more}}


def asked(folder):
    notebook = folder / "asked.txt"
    return notebook.read_text().split() if notebook.exists() else []


def interrupt(folder, mark, generations):
    """Ctrl-C once so many more generations were begun; exit code and what standard error showed."""
    enough = len(asked(folder)) + generations
    process = subprocess.Popen(
        command(*SWEEP), **around(folder, mark), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while process.poll() is None and len(asked(folder)) < enough:
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=SECONDS)
    assert out == ""
    return process.returncode, err


def check_tokens(folder, generations):
    """Every reply that was kept has ids that decode to its text; both models have one tokenizer."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder / "first")
    for reply in map(decode, generations):
        assert tokenizer.decode(reply.tokens.ids, skip_special_tokens=True) == reply.text
        assert len(reply.tokens.ids) == len(reply.tokens.logprobs) == reply.usage.completion_tokens


def test_a_sweep_on_vllm_that_is_killed_and_stopped_makes_nothing_again_and_leaves_nothing(folder):
    mark, before, store = f"collabsim-{uuid.uuid4().hex}", shared_memory(), folder / "g.sqlite"

    killed = in_a_process(*SWEEP, timeout=SECONDS, **around(folder, mark, KILL_AFTER="9:0.01"))
    assert killed.code == -signal.SIGKILL, killed.err
    begun, committed = [len(asked(folder))], [kept_generations(store)]
    assert (marked(mark), left_in_shared_memory(before)) == (set(), set())

    code, err = interrupt(folder, mark, generations=8)
    assert (code, "Traceback" in err) == (130, False), err
    begun, committed = [*begun, len(asked(folder))], [*committed, kept_generations(store)]
    assert (marked(mark), left_in_shared_memory(before)) == (set(), set())

    done = in_a_process(*SWEEP, timeout=SECONDS, **around(folder, mark))
    assert done.code == 0, done.err
    assert (marked(mark), left_in_shared_memory(before)) == (set(), set())

    assert 0 < len(committed[0]) < len(committed[1]) < 2 * N_ITEMS  # both met a sweep at work
    assert len(kept_generations(store)) == 2 * N_ITEMS
    for number, safe in zip(begun, committed, strict=True):
        assert safe.items() <= kept_generations(store).items()
        assert safe.keys().isdisjoint(asked(folder)[number:]), "a committed generation was made again"
    check_tokens(folder, kept_generations(store).values())
    assert rows(folder / "run" / "outcomes.sqlite", "SELECT count(*) FROM run WHERE outcome IS NULL") == [(0,)]
