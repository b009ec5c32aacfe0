"""Hostile programs: none passes, none gets out, none leaves anything, none slows what comes next."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from code_boxes import require_sandbox
from hostility import BURNS, Aftermath, Outside, programs, run_all

pytestmark = pytest.mark.slow

ALL = list(programs())
QUICK = [name for name in ALL if not name.endswith(BURNS)]
SECONDS_OF_AN_INNOCENT_PROGRAM = 10.0
"""Far above what it takes (about 0.05) even on a crowded machine; a worker in trouble would never come back."""


@pytest.fixture(scope="module")
def outside() -> Iterator[Outside]:
    require_sandbox()
    made = Outside()
    yield made
    made.listener.close()
    shutil.rmtree(made.folder)


@pytest.fixture(scope="module")
def aftermath(outside: Outside) -> dict[str, Aftermath]:
    return run_all(ALL, outside, namespaces=True)


@pytest.fixture(scope="module")
def on_the_floor(outside: Outside) -> dict[str, Aftermath]:
    return run_all(QUICK, outside, namespaces=False)


def faults(after: Aftermath) -> list[str]:
    """What went wrong; empty when the program failed by its own doing and left the machine as it was."""
    found = []
    if after.report.ending != "failed" or not after.report.reason:
        found.append(f"ended as {after.report.ending}: {after.report.reason}")
    if after.next_report.ending != "passed":
        found.append(f"the next program {after.next_report.ending}: {after.next_report.reason}")
    if after.next_seconds > SECONDS_OF_AN_INNOCENT_PROGRAM:
        found.append(f"the next program took {after.next_seconds:.1f} s")
    if after.processes:
        found.append(f"{after.processes} processes left")
    return found + [f"left {name}" for name in after.files]


def test_there_are_enough_hostile_programs():
    assert len(ALL) == len(set(ALL)) >= 100


@pytest.mark.parametrize("name", ALL)
def test_a_hostile_program_fails_and_harms_nothing(name, aftermath):
    assert faults(aftermath[name]) == []


@pytest.mark.parametrize("name", QUICK)
def test_a_hostile_program_fails_without_namespaces_too(name, on_the_floor):
    assert faults(on_the_floor[name]) == []


def test_nothing_outside_was_touched(outside, aftermath, on_the_floor):
    assert outside.harm() == []


def test_the_check_of_the_outside_sees_a_file_that_should_not_be_there():
    made = Outside()
    made.canary.touch()
    made.listener.close()
    assert made.canary.exists()
    os.unlink(made.kept)
    made.folder.joinpath("canary").rename(made.folder / "other")
    with pytest.raises(OSError, match="Bad file descriptor"):
        made.harm()
    shutil.rmtree(made.folder)
