import random
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from store_models import question

from collabsim.episode import Reply
from collabsim.store import GenerationStore

SCRIPT = Path(__file__).with_name("writer_process.py")


def writer(path, first, last, signal):
    command = [sys.executable, str(SCRIPT), str(path), str(first), str(last), str(signal)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def reports(text):
    """What a writer said it got: request number -> (key, length, beginning of the text). A cut last line is none."""
    lines = [line.split(" ", 3) for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return {int(number): (key, int(length), begin.rstrip("\n")) for number, key, length, begin in lines}


def held(store, key):
    reply = store.get(key)
    return reply and (key, len(reply.text), reply.text[:20].rstrip("\n"))


class Silent:
    identity = "sha256:author"
    revision = "0"

    async def areply(self, request):
        raise AssertionError("this was generated and reported before, and must be in the store")


async def test_whatever_a_killed_process_had_got_back_is_in_the_file(tmp_path):
    path, signal = tmp_path / "generations.sqlite", tmp_path / "go"
    signal.touch()
    moments = random.Random(20)
    reported = {}
    for attempt in range(6):
        process = writer(path, 1000 * attempt, 1000 * (attempt + 1), signal)
        first_line = process.stdout.readline()
        time.sleep(moments.random() * 0.3)
        process.kill()
        reported |= reports(first_line + process.stdout.read())
        process.wait()
        with sqlite3.connect(path) as file:
            assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        file.close()
    assert len(reported) > 50
    with GenerationStore(path) as store:
        assert {number: held(store, key) for number, (key, *_) in reported.items()} == reported
        for number, (_, length, begin) in reported.items():
            reply = (await store.fetch(Silent(), question(seed=number))).reply
            assert (len(reply.text), reply.text[:20]) == (length, begin)
        assert store.generated == 0


def test_processes_that_share_a_new_file_agree_on_every_reply(tmp_path):
    path, signal = tmp_path / "generations.sqlite", tmp_path / "go"
    processes = [writer(path, 0, 300, signal) for _ in range(3)]
    time.sleep(0.5)
    signal.touch()
    told = [reports(process.communicate(timeout=60)[0]) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert len(told[0]) == 300
    assert told[0] == told[1] == told[2]
    with GenerationStore(path) as store:
        assert {number: held(store, key) for number, (key, *_) in told[0].items()} == told[0]


async def test_the_first_commit_wins_and_the_slower_process_returns_it(tmp_path):
    path = tmp_path / "generations.sqlite"
    with GenerationStore(path) as slow, GenerationStore(path) as fast:

        class Quick:
            identity, revision = "sha256:m", "0"

            async def areply(self, request):
                return Reply("first")

        class Slow(Quick):
            async def areply(self, request):
                await fast.fetch(Quick(), request)  # the other process commits while this one is generating
                return Reply("second")

        fetched = await slow.fetch(Slow(), question())
        assert (fetched.reply.text, fetched.reused) == ("first", False)
        assert (await slow.fetch(Slow(), question())).reply.text == "first"


def test_a_store_that_nobody_closed_is_complete_after_exit(tmp_path):
    code = f"""
import asyncio, sys
sys.path.insert(0, {str(SCRIPT.parent)!r})
from store_models import Speaker, question
from collabsim.store import GenerationStore
store = GenerationStore({str(tmp_path / "s.sqlite")!r})
async def main():
    for seed in range(100):
        print((await store.fetch(Speaker(), question(seed=seed))).key)
asyncio.run(main())
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ended.stderr == ""
    with GenerationStore(tmp_path / "s.sqlite") as store:
        assert len(dict(store.export(ended.stdout.split()))) == 100


def test_a_process_may_end_while_a_generation_is_in_flight(tmp_path):
    code = f"""
import asyncio, sys, threading
sys.path.insert(0, {str(SCRIPT.parent)!r})
from store_models import Speaker, question
from collabsim.store import GenerationStore
store, speaker = GenerationStore({str(tmp_path / "s.sqlite")!r}), Speaker(closed=True)
threading.Thread(target=lambda: asyncio.run(store.fetch(speaker, question())), daemon=True).start()
speaker.started.wait()
print("ending", flush=True)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
    assert (ended.returncode, ended.stdout) == (0, "ending\n")
