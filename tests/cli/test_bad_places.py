"""Folders and files that cannot be used, and disks that are full: one line, exit code 2, and nothing lost."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest
from command_line import contents, kept_generations, write_config
from limits import no_file_above

# ---- folders and files to write to -----------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["items.jsonl/run", "items.jsonl", "/proc/run"])
def test_a_run_folder_that_cannot_be_made_is_named(collabsim, work, place):
    before = contents(work)
    ran = collabsim("sweep", "config.yaml", "--out", place)
    assert ran.code == 2
    assert f"cannot make the run folder {place}: " in ran.message
    assert "name another with --out" in ran.message
    assert contents(work) == before
    assert not kept_generations()


@pytest.mark.parametrize("name", ["notes.txt", "values.json", ".hidden"])
def test_a_folder_with_other_files_is_not_taken_over(collabsim, work, name):
    (work / "mine").mkdir()
    (work / "mine" / name).write_text("{}")
    before = contents(work.parent)
    ran = collabsim("sweep", "config.yaml", "--out", "mine")
    assert ran.code == 2
    assert "mine holds other files and no run.json; name an empty or new folder with --out" in ran.message
    assert contents(work.parent) == before


@pytest.mark.parametrize("record", ["[]", "{}", '{"identity": {}}'])
def test_a_run_json_of_another_program_is_left_alone(collabsim, work, record):
    (work / "mine").mkdir()
    (work / "mine" / "run.json").write_text(record)
    before = contents(work.parent)
    ran = collabsim("sweep", "config.yaml", "--out", "mine")
    assert ran.code == 2
    assert "run.json was not written by a sweep" in ran.message
    assert contents(work.parent) == before


def test_a_damaged_run_json_is_left_for_its_owner_to_restore(collabsim, work, used):
    (used / "run.json").write_text('{"identity": {')
    before = contents(work.parent)
    ran = collabsim("sweep", "config.yaml", "--out", "run")
    assert ran.code == 2
    assert "run.json cannot be read" in ran.message
    assert "restore it or name another folder" in ran.message
    assert contents(work.parent) == before


@pytest.mark.parametrize(
    ("settings", "differing"),
    [
        (("task.limit=3",), "task.limit"),
        (("sweep.seed=1", "pool.novice.options.skill=0.0"), "pool.novice.options.skill, sweep.seed"),
        (("pool.newcomer={model: 'simulated:'}",), "pool.newcomer"),
        (("protocol.name=debate",), "protocol.name"),
    ],
)
def test_a_used_run_folder_with_another_config_names_the_differing_keys(collabsim, work, used, settings, differing):
    before = contents(work.parent)
    ran = collabsim("sweep", "config.yaml", "--out", "run", *(arg for one in settings for arg in ("--set", one)))
    assert ran.code == 2
    told = ran.message.partition("differing keys: ")[2].partition(". ")[0].split(", ")
    assert [key for key in told if key not in ("items", "system")] == differing.split(", ")
    assert "Name another folder with --out, or restore these keys" in ran.message
    assert contents(work.parent) == before


@pytest.mark.parametrize(
    ("store", "says"),
    [
        ("nowhere/g.sqlite", "nowhere, found none; make it"),
        (".", "got a folder; name a file in it"),
        (
            "~no-such-user/g.sqlite",
            "store: '~no-such-user/g.sqlite' begins with a home folder that cannot be found; name it",
        ),
        ("config.yaml", "it is not a database; move it away or name another file"),
        ("run/outcomes.sqlite", "expected a generation store"),
    ],
)
def test_a_store_that_cannot_be_used_is_named_and_left_alone(collabsim, work, used, store, says):
    before = contents(work.parent)
    ran = collabsim("sweep", "config.yaml", "--out", "new", "--store", store)
    assert ran.code == 2
    assert says in ran.message
    assert contents(work.parent) == before


NO_HOME = "begins with a home folder that cannot be found; name it in full"


@pytest.fixture
def all_sections(work):
    """A config that every command takes."""
    compare = {"objectives": ["system"], "protocols": {"vote": {}}, "tasks": {"sums": {}}}
    return write_config(
        work / "config.yaml",
        task={"source": "jsonl:items.jsonl", "limit": 2},
        train={"seat": "novice", "items": {"limit": 2}},
        finetune={"items": {"limit": 2}},
        compare=compare,
    )


@pytest.mark.parametrize("command", ["sweep", "train", "finetune", "compare"])
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("config.yaml", "--out", "~nobody9/x"), "out: '~nobody9/x'"),
        (("config.yaml", "--store", "~nobody9/x"), "store: '~nobody9/x'"),
        (("~nobody9/config.yaml",), "CONFIG: '~nobody9/config.yaml'"),
    ],
)
def test_a_home_folder_that_is_not_there_is_named_by_every_command(
    collabsim, work, all_sections, command, arguments, says
):
    before = contents(work)
    ran = collabsim(command, *arguments)
    assert (ran.code, ran.message) == (2, f"{says} {NO_HOME}")
    assert contents(work) == before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("report", "~nobody9/x"), "DIR: '~nobody9/x'"),
        (("report", "~nobody9/x", "--json"), "DIR: '~nobody9/x'"),
        (("report", "~nobody9/x", "--answers", "all"), "DIR: '~nobody9/x'"),
        (("report", "run", "--svg", "~nobody9/x.svg"), "--svg: '~nobody9/x.svg'"),
        (("tasks", "jsonl:~nobody9/x"), "task.source: '~nobody9/x'"),
        (("sweep", "config.yaml", "--set", "task.source=jsonl:~nobody9/x"), "task.source: '~nobody9/x'"),
        (("sweep", "config.yaml", "--set", "task=hub:~nobody9/x"), "task.source: '~nobody9/x'"),
        (("sweep", "config.yaml", "--set", "pool.novice=~nobody9/x"), "model of 'novice': '~nobody9/x'"),
        (("sweep", "config.yaml", "--set", "pool.novice=~nobody9/x:y"), "model of 'novice': '~nobody9/x:y'"),
        (("sweep", "config.yaml", "--set", "protocol={graph: '~nobody9/x.py:app'}"), "protocol.graph: '~nobody9/x.py'"),
    ],
)
def test_so_it_is_wherever_a_path_is_given(collabsim, work, used, arguments, says):
    before = contents(work)
    ran = collabsim(*arguments)
    assert (ran.code, ran.message) == (2, f"{says} {NO_HOME}")
    assert contents(work) == before


def test_the_variable_that_names_the_store_may_not_either(collabsim, work, monkeypatch):
    monkeypatch.setenv("COLLABSIM_STORE", "~nobody9/x")
    ran = collabsim("sweep", "config.yaml", "--out", "run")
    assert (ran.code, ran.message) == (2, f"COLLABSIM_STORE: '~nobody9/x' {NO_HOME}")
    assert not (work / "run").exists()


def test_home_folders_are_found_wherever_a_path_is_given(collabsim, work, used, monkeypatch):
    monkeypatch.setenv("HOME", str(work))
    ran = collabsim(
        "sweep", "~/config.yaml", "--set", "task=jsonl:~/items.jsonl", "--out", "~/new", "--store", "~/g.sqlite"
    )
    assert ran.code == 0, ran.err
    assert collabsim("report", "~/new", "--svg", "~/new.svg").code == 0
    assert {"new", "new.svg", "g.sqlite"} <= {path.name for path in work.iterdir()}


@pytest.mark.parametrize(
    ("folder", "says"),
    [
        ("nowhere", "there is no run folder nowhere"),
        ("config.yaml", "there is no run folder config.yaml"),
        ("foreign", "foreign is not a run folder (no run.json)"),
        ("unfinished", "the run in unfinished has no values yet; run its sweep again to finish it"),
        ("odd", "values.json was not written by a sweep"),
    ],
)
@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_a_report_needs_a_finished_run(collabsim, work, used, folder, says, flags):
    (work / "foreign").mkdir()
    (work / "foreign" / "values.json").write_text("{}")
    (shutil.copytree(used, work / "unfinished") / "values.json").unlink()
    (shutil.copytree(used, work / "odd") / "values.json").write_text("[1, 2]")
    before = contents(work)
    ran = collabsim("report", folder, *flags)
    assert ran.code == 2
    assert says in ran.message
    assert contents(work) == before


# ---- full disks ------------------------------------------------------------------------------------------------------


@pytest.fixture
def undisturbed(collabsim, monkeypatch, tmp_path):
    """Values of the debate that the tests below fail to write, without their cost."""
    monkeypatch.setenv("COLLABSIM_STORE", str(tmp_path / "undisturbed.sqlite"))
    values = json.loads(collabsim(*DEBATE, "--out", tmp_path / "undisturbed", "--json").out)
    del values["cost"]
    return values


DEBATE = ("sweep", "config.yaml", "--set", "protocol.name=debate")


def check_resumed(collabsim, arguments, undisturbed, kept):
    ran = collabsim(*arguments, "--json")
    assert ran.code == 0, ran.err
    values = json.loads(ran.out)
    del values["cost"]
    assert values == undisturbed
    store = arguments[arguments.index("--store") + 1]
    assert kept.items() <= kept_generations(store).items()


@pytest.mark.parametrize("kilobytes", [1, 10, 30, 60, 100])
def test_a_disk_that_refuses_to_write_stops_a_sweep_and_loses_nothing(collabsim, work, undisturbed, kilobytes):
    arguments = (*DEBATE, "--out", "run", "--store", "g.sqlite")
    with no_file_above(kilobytes * 1024):
        ran = collabsim(*arguments)
    assert ran.code == 2
    assert "the disk" in ran.message or "make room" in ran.message
    assert "g.sqlite" in ran.message or "run" in ran.message
    assert not (work / "run" / "values.json").exists()
    kept = kept_generations("g.sqlite")
    assert kept or kilobytes < 100  # the largest limit is met in the middle of the sweep
    check_resumed(collabsim, arguments, undisturbed, kept)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 128 KiB, and a function that gives it more room."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", place], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    yield place, lambda: subprocess.run(["mount", "-o", "remount,size=16m", place], check=True)
    subprocess.run(["umount", "--lazy", place], check=True)


@pytest.mark.parametrize("taken", [0, 40, 80, 110])
def test_a_full_disk_stops_a_sweep_and_loses_nothing(collabsim, small_disk, undisturbed, taken):
    disk, make_room = small_disk
    (disk / "other").write_bytes(b"x" * taken * 1024)
    arguments = (*DEBATE, "--out", disk / "run", "--store", disk / "g.sqlite")
    ran = collabsim(*arguments)
    assert ran.code == 2
    assert str(disk) in ran.message
    assert "room" in ran.message or "the disk failed or is full" in ran.message
    assert not (disk / "run" / "values.json").exists()
    make_room()
    check_resumed(collabsim, arguments, undisturbed, kept_generations(disk / "g.sqlite"))
