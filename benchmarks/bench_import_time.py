"""How long `collabsim --help` takes, from a cold interpreter with warm files."""

import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from recording import record

MOST_SECONDS = 0.5


def show_help() -> tuple[float, float]:
    """Wall and CPU seconds of one call."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([Path(sys.executable).with_name("collabsim"), "--help"], check=True, capture_output=True)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def test_import_time(benchmark):
    show_help()
    times = benchmark.pedantic(lambda: [show_help() for _ in range(15)], rounds=1)
    wall, cpu = zip(*times, strict=True)
    record(
        "import_time",
        "`collabsim --help`",
        ("", "best", "median"),
        [
            ("wall, s", f"{min(wall):.2f}", f"{median(wall):.2f}"),
            ("CPU, s", f"{min(cpu):.2f}", f"{median(cpu):.2f}"),
        ],
        "15 calls, after one that warms the files.",
    )
    assert min(cpu) < MOST_SECONDS
