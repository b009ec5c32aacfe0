"""Many runs are started in one place, `collabsim/system/execute.py`: nothing else may start several things at a time."""

from __future__ import annotations

import ast

import pytest
from test_imports import ROOT, python_files

EXECUTOR = "collabsim/system/execute.py"
STARTERS = {
    "gather",
    "TaskGroup",
    "Semaphore",
    "BoundedSemaphore",
    "as_completed",
    "wait",
    "create_task",
    "ensure_future",
}
OTHERS = {
    "collabsim/loop.py": "runs the coroutine of a synchronous caller, and ends what is left when the process ends",
    "collabsim/models/chat/server.py": "bounds the calls that one server gets at a time, whichever runs make them",
    "collabsim/models/engines/vllm_gpu.py": "waits for requests under way when an engine is closed",
    "graphs/feedback.py": "calls inside one run: the comments of one critic",
    "graphs/rank_and_fuse.py": "calls inside one run: a comparison of every pair of replies",
}


def starters(source: str) -> set[str]:
    """Functions and classes of asyncio in `source` that start several things, or bound how many go on at a time."""
    tree = ast.parse(source)
    found = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "asyncio"
        for alias in node.names
    }
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.Attribute)):
        of_asyncio = isinstance(node.value, ast.Name) and node.value.id == "asyncio"
        if of_asyncio or node.attr == "create_task":  # the latter of a loop or a task group, too
            found.add(node.attr)
    return found & STARTERS


@pytest.mark.parametrize(
    "source",
    [
        "await asyncio.gather(*runs)",
        "async with asyncio.TaskGroup() as group: pass",
        "from asyncio import Semaphore",
        "gate = asyncio.Semaphore(3)",
        "asyncio.get_running_loop().create_task(run)",
    ],
)
def test_the_check_sees_what_starts_many(source):
    assert starters(f"async def many():\n    {source}\n")


def test_nothing_else_starts_many_runs():
    found = {str(path.relative_to(ROOT)) for path, _ in python_files() if starters(path.read_text(encoding="utf-8"))}
    assert found - set(OTHERS) == {EXECUTOR}
    assert set(OTHERS) - found == set(), "no longer needed"
