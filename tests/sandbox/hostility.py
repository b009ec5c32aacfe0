"""Runs the programs of `hostile.txt` and writes down what became of them and of the machine around them."""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from collabsim.sandbox.limits import Limits
from collabsim.sandbox.report import Examination, Report
from collabsim.sandbox.worker import Worker
from collabsim.sandbox.worker_pool import Sandbox

TESTS = "assert f(3) == 9\nassert f(4) == 16"
INNOCENT = Examination("def f(x):\n    return x * x", TESTS, "f")
LIMITS = Limits(
    cpu_seconds=1, wall_seconds=3.0, memory_mb=256, file_mb=8, folder_mb=16, folder_entries=500, output_kb=64
)
BURNS = " burns"


@dataclass(frozen=True)
class Aftermath:
    """One program's report, and the state of things after it."""

    report: Report
    next_report: Report
    """Of an innocent program that ran next on the same worker."""
    next_seconds: float
    """How long that took, without waiting for a processor."""
    processes: int
    """Processes left beneath the worker."""
    files: list[str]
    """Files left in the worker's folder."""


def programs() -> dict[str, str]:
    """Sources by name; names of those that take a limit to end have the mark `BURNS`."""
    parts = (Path(__file__).parent / "hostile.txt").read_text(encoding="utf-8").split("\n### ")[1:]
    return dict(part.split("\n", 1) for part in parts)


class Outside:
    """What programs try to reach: a folder that anyone may write, a port, this process."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="hostile-"))
        self.folder.chmod(0o777)
        self.canary = self.folder / "canary"
        self.kept = self.folder / "canary-kept"
        self.kept.write_text("kept", encoding="utf-8")
        self.kept.chmod(0o666)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.tmp_mode = Path("/tmp").stat().st_mode

    def aimed(self, source: str, worker: int) -> str:
        """A program with its targets filled in."""
        port = self.listener.getsockname()[1]
        targets = {"CANARY": self.canary, "PORT": port, "PARENT": os.getpid(), "WORKER": worker}
        for name, target in targets.items():
            source = source.replace(name, str(target))
        return source

    def harm(self) -> list[str]:
        """What is not as it was."""
        found = [f"left {path.name}" for path in self.folder.iterdir() if path != self.kept]
        if not self.kept.exists() or self.kept.read_text(encoding="utf-8") != "kept":
            found.append("changed a file outside")
        if Path("/tmp").stat().st_mode != self.tmp_mode:
            found.append("changed a mode outside")
        try:
            self.listener.accept()
            found.append("connected")
        except BlockingIOError:
            pass
        return found


def run_all(names: list[str], outside: Outside, *, namespaces: bool) -> dict[str, Aftermath]:
    """Every program on one of two workers, with an innocent one after each."""
    with ThreadPoolExecutor(2) as threads:
        halves = threads.map(lambda half: dict(_run_half(half, outside, namespaces)), (names[::2], names[1::2]))
        return {name: after for half in halves for name, after in half.items()}


def _run_half(names: list[str], outside: Outside, namespaces: bool) -> Iterator[tuple[str, Aftermath]]:
    known = programs()
    with Sandbox(LIMITS, workers=1, namespaces=namespaces) as sandbox:
        sandbox.run(INNOCENT)
        for name in names:
            worker = sandbox._free[0]
            report = sandbox.run(Examination(outside.aimed(known[name], worker.pid), TESTS, "f"))
            processes, files = len(descendants(worker.pid)) - bool("pid" in worker.namespaces), left_in(worker)
            started = time.monotonic()
            next_report = sandbox.run(INNOCENT)
            seconds = time.monotonic() - started - next_report.waited_seconds
            yield name, Aftermath(report, next_report, seconds, processes, files)


def descendants(pid: int) -> list[int]:
    """Processes beneath a process."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text(encoding="ascii").split()):
            found += [child, *descendants(child)]
    return found


def left_in(worker: Worker) -> list[str]:
    """Files in a worker's folder, looked at from inside its mount namespace."""
    inside = (descendants(worker.pid) or [worker.pid])[0]
    return os.listdir(f"/proc/{inside}/root{worker.work}")
