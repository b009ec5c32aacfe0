"""A sweep that is killed, or stopped by Ctrl-C, and started again by the same command.

Its models are witnesses (see `witness.py`): they note every generation before they make it, so that what was asked of
them can be held against what the store had committed when the process died.
"""

from __future__ import annotations

import json
import os
import pty
import random
import shlex
import shutil
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from command_line import command, in_a_process, kept_generations, rows, write_config

N_ITEMS = 16
KILLS = 10
OUTCOMES = "SELECT kind, coalition, item, outcome, verdict, final, n_calls FROM run"


def member(name, skill):
    options = {"name": name, "skill": skill, "conformity": 0.4, "latency": 0.01}
    return {"model": "python:witness:member", "options": options}


@pytest.fixture
def undisturbed(work, tmp_path, monkeypatch, collabsim):
    """The folder of a debate that was swept in one go; four runs in flight make it last for about a second."""
    items = [{"question": f"What is {k} plus {k + 3}?", "answer": str(2 * k + 3)} for k in range(N_ITEMS)]
    (work / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    pool = {name: member(name, skill) for name, skill in (("novice", -0.5), ("steady", 0.5), ("expert", 1.5))}
    write_config(work / "config.yaml", pool=pool, protocol={"name": "debate"}, concurrency=4)
    folder = shutil.copytree(work, tmp_path / "undisturbed")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("WITNESS", str(folder / "asked.txt"))
    ran = collabsim(*SWEEP)
    assert ran.code == 0, ran.err
    return folder


SWEEP = ("sweep", "config.yaml", "--out", "run", "--store", "g.sqlite", "--json")


def around(folder, **more):
    """Where and in which surroundings the command is started."""
    search = str(Path(__file__).parent)
    return {"cwd": folder, "env": {**os.environ, "PYTHONPATH": search, "WITNESS": str(folder / "asked.txt"), **more}}


def asked(folder):
    """Keys of all generations that were begun, in all sessions."""
    notebook = folder / "asked.txt"
    return notebook.read_text().split() if notebook.exists() else []


def values_of(folder):
    """Values without the costs that depend on who was stopped when."""
    values = json.loads((folder / "run" / "values.json").read_text())
    return {**values, "cost": {name: values["cost"][name] for name in ("runs", "calls")}}


def check_same(folder, undisturbed):
    """The same values, outcomes and generations, none of them missing or made under another key."""
    assert values_of(folder) == values_of(undisturbed)
    outcomes = [set(rows(place / "run" / "outcomes.sqlite", OUTCOMES)) for place in (folder, undisturbed)]
    assert outcomes[0] == outcomes[1]
    assert kept_generations(folder / "g.sqlite").keys() == kept_generations(undisturbed / "g.sqlite").keys()


def check_files(folder):
    """Whatever is there is whole: databases with their write-ahead logs, and JSON."""
    for path in (folder / "g.sqlite", folder / "run" / "outcomes.sqlite"):
        if path.exists():
            assert rows(path, "PRAGMA integrity_check") in ([("ok",)], [])
    for path in folder.glob("run/*.json"):
        json.loads(path.read_text())


def kill_when_the_run_folder_appears(folder):
    with subprocess.Popen(
        command(*SWEEP), **around(folder), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        while process.poll() is None and not (folder / "run").exists():
            time.sleep(0.0005)
        process.kill()
        return process.wait(), process.stderr.read()


def kill_after(folder, generations, seconds):
    ran = in_a_process(*SWEEP, **around(folder, KILL_AFTER=f"{generations}:{seconds}"))
    return ran.code, ran.err


@pytest.mark.slow
def test_a_sweep_killed_at_ten_moments_ends_as_if_undisturbed(undisturbed, work, tmp_path):
    moments = random.Random(2026)
    targets = sorted(moments.sample(range(1, len(asked(undisturbed)) - 20), KILLS - 1))
    deaths = []
    committed = {}
    for number, target in enumerate([0, *targets]):
        if target == 0:
            code, said = kill_when_the_run_folder_appears(work)
        else:
            code, said = kill_after(work, max(target - len(committed), 1), moments.uniform(0, 0.01))
        assert code == -signal.SIGKILL, said
        # Looking at a database mends its write-ahead log: the next session must do that itself.
        dead = shutil.copytree(work, tmp_path / f"dead-{number}")
        check_files(dead)
        committed = kept_generations(dead / "g.sqlite")
        deaths.append((len(asked(dead)), committed))

    done = in_a_process(*SWEEP, **around(work))
    assert done.code == 0, done.err
    assert done.out == (work / "run" / "values.json").read_text()
    check_files(work)
    check_same(work, undisturbed)
    kept, begun = kept_generations(work / "g.sqlite"), asked(work)
    assert len(committed) < len(kept) == len(asked(undisturbed))  # every one of the kills met a sweep at work
    for n_asked, safe in deaths:
        assert safe.items() <= kept.items()
        assert safe.keys().isdisjoint(begun[n_asked:]), "a committed generation was made again"


def read_all(source, into):
    """Everything until nobody writes any more, which a pipe tells by an empty read and a terminal by an error."""
    with suppress(OSError):
        while part := os.read(source, 4096):
            into.append(part)


def interrupt(folder, on_terminal):
    """Ctrl-C in the middle of a sweep; exit code and what standard error showed."""
    primary, secondary = pty.openpty() if on_terminal else os.pipe()
    shown: list[bytes] = []
    reader = threading.Thread(target=read_all, args=(primary, shown), daemon=True)
    how = around(folder, TERM="xterm")
    process = subprocess.Popen(command(*SWEEP), **how, stdout=subprocess.PIPE, stderr=secondary)
    os.close(secondary)
    reader.start()
    while process.poll() is None and len(asked(folder)) < 20:
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    reader.join(5)
    os.close(primary)
    assert out == b""
    return process.returncode, b"".join(shown).decode()


@pytest.mark.slow
@pytest.mark.parametrize("on_terminal", [False, True], ids=["in a pipe", "on a terminal"])
def test_ctrl_c_says_how_to_go_on_and_the_same_command_does(undisturbed, work, on_terminal):
    code, shown = interrupt(work, on_terminal)
    assert code == 130
    assert "Traceback" not in shown
    assert f"Stopped; everything so far is in run. To go on: {shlex.join(['collabsim', *SWEEP])}" in shown
    assert ("runs ·" in shown) == on_terminal  # the progress line
    assert not (work / "run" / "values.json").exists()
    check_files(work)
    committed, n_asked = kept_generations(work / "g.sqlite"), len(asked(work))
    assert committed

    told = shlex.split(shown.partition("To go on: collabsim ")[2].splitlines()[0])
    done = in_a_process(*told, **around(work))
    assert done.code == 0, done.err
    assert done.err.startswith("resuming: ")
    check_same(work, undisturbed)
    assert committed.keys().isdisjoint(asked(work)[n_asked:])
