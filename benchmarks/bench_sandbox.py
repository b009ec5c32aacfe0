"""How many programs a second the sandbox runs, and what one costs from start to report."""

from __future__ import annotations

import statistics
import time

import pytest
from recording import record

from collabsim.sandbox import Examination, Report, Sandbox, Script, sandbox_report

N = 60
LEAST_A_SECOND = 8  # of trivial programs on two cores: issue 4

TRIVIAL = Examination("def f(x):\n    return x + 1", "assert f(1) == 2\nassert f(5) == 6", "f")
MANY_CALLS = Examination("def f(x):\n    return x + 1", "for n in range(1000):\n    assert f(n) == n + 1", "f")
WITH_NUMPY = Examination("import numpy as np\ndef f(x):\n    return int(np.sum(x))", "assert f([1, 2]) == 3", "f")
SCRIPT = Script("print(sum(map(int, input().split())))", "1 2\n")


def seconds_each(sandbox: Sandbox, work: Examination | Script, n: int) -> float:
    """Seconds of one program when all workers are kept busy."""
    started = time.perf_counter()
    reports: list[Report] = sandbox.run_all([work] * n)
    assert {(report.ending, report.reason) for report in reports} == {("passed", "")}
    return (time.perf_counter() - started) / n


def first_seconds(namespaces: bool) -> float:
    """Seconds to the first report: a worker's start and one program."""
    started = time.perf_counter()
    with Sandbox(workers=1, namespaces=namespaces) as sandbox:
        assert sandbox.run(TRIVIAL).ending == "passed"
        return time.perf_counter() - started


def test_programs_a_second():
    if not sandbox_report().ready:
        pytest.skip(f"needs the sandbox ({sandbox_report().available})")
    rows = []
    for namespaces, where in ((True, "with namespaces"), (False, "on the floor")):
        with Sandbox(namespaces=namespaces) as sandbox:
            sandbox.run_all([TRIVIAL] * 8)
            for name, work, n in (
                ("trivial tests", TRIVIAL, N),
                ("trivial script", SCRIPT, N),
                ("1000 calls", MANY_CALLS, N // 6),
                ("import numpy", WITH_NUMPY, N // 6),
            ):
                each = statistics.median(seconds_each(sandbox, work, n) for _ in range(3))
                rows.append([name, where, f"{1 / each:.0f}", f"{1000 * each * sandbox.workers:.1f}"])
                if work is TRIVIAL:
                    assert 1 / each >= LEAST_A_SECOND
        rows.append(["first program, worker's start included", where, "", f"{1000 * first_seconds(namespaces):.0f}"])
    record(
        "sandbox",
        "Programs in the sandbox",
        ["program", "where", "programs a second, all workers", "ms for one, on its worker"],
        rows,
        "Medians of three rounds, one worker a core. Each program gets two fresh processes (itself and its tests), a folder, "
        "a user of its own where the sandbox is root, Landlock, seccomp and limits. A call from a test into a program is a "
        "message each way.",
    )
