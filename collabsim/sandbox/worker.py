"""The user's end of one worker: starts it, asks it, ends it.

In: an examination or a script. Out: a `Report`, or `WorkerFailed` when the worker itself failed. A worker is asked by one
thread at a time. Left out on purpose: which worker is free; that is the pool's.
"""

from __future__ import annotations

import dataclasses
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from . import verdict
from .limits import Limits
from .report import Examination, Report, Script
from .watch import LONGEST_WAIT
from .wire import Frames, Gone, Unreadable

START = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from sandbox.worker_process import main; del sys.path[0]; main()"
)
"""The sandbox is imported as a package of its own: a worker needs nothing else of collabsim."""

ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    "LC_ALL": "C.UTF-8",
    "PATH": "/usr/bin:/bin",
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
}
FLAGS = ("-s", "-S", "-P", "-B")
"""No site-packages, no current folder. Not `-I`, which would void PYTHONHASHSEED."""

GRACE = 15.0
"""Seconds beyond the longest run after which a worker that says nothing is given up."""


class WorkerFailed(Exception):
    """The worker could not be started, died, or fell silent. Says nothing about the program."""


class Worker:
    """One worker process."""

    def __init__(self, number: int, limits: Limits, packages: tuple[str, ...], *, namespaces: bool = True) -> None:
        self._limits = limits
        self._number = number
        self._root = Path(tempfile.mkdtemp(prefix="collabsim-sandbox-"))
        work = self.work = self._root / "work"
        work.mkdir()
        self._root.chmod(0o711)
        settings = {"work": str(work), "work_mb": 2 * limits.folder_mb, "packages": _folders(packages)}
        settings["namespaces"] = namespaces
        self._control, theirs = socket.socketpair()
        home = str(Path(__file__).parents[1])
        command = [sys.executable, *FLAGS, "-c", START, home, str(theirs.fileno()), json.dumps(settings)]
        with theirs:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=ENVIRONMENT,
                cwd="/",
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self._await_ready()

    def _await_ready(self) -> None:
        self._control.settimeout(60)
        try:
            message = _received(self._control)
        except WorkerFailed:
            self.close()
            raise
        if "ready" not in message:
            self.close()
            raise WorkerFailed(f"the sandbox cannot start: {message.get('failed', 'no reason given')}")
        self.namespaces = tuple(message["ready"])

    @property
    def pid(self) -> int:
        """Id of the worker's process."""
        return self._process.pid

    def run(self, work: Examination | Script) -> Report:
        """Have one program run. Raises `WorkerFailed`; the worker is of no use then."""
        here, there = socket.socketpair()
        with here:
            with there:
                self._ask("script" if isinstance(work, Script) else "calls", there)
            if isinstance(work, Script):
                _hand(here, dataclasses.asdict(work))
                return verdict.of_script(self._answer(), self._limits)
            nonce = secrets.token_hex(16)
            _hand(here, {**dataclasses.asdict(work), "nonce": nonce})
            seen = self._answer()
            return verdict.of_examination(seen, _last_word(here), nonce, self._limits)

    def _ask(self, mode: str, line: socket.socket) -> None:
        request = {"mode": mode, "limits": dataclasses.asdict(self._limits), "number": self._number}
        data = json.dumps(request).encode()
        try:
            socket.send_fds(self._control, [len(data).to_bytes(4, "big")], [line.fileno()])
            self._control.sendall(data)
        except OSError as error:
            raise WorkerFailed(f"the worker is gone: {error}") from error

    def _answer(self) -> dict[str, Any]:
        self._control.settimeout(LONGEST_WAIT * self._limits.wall_seconds + GRACE)
        return _received(self._control)

    def close(self) -> None:
        """End the worker and everything in it."""
        self._control.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._root, ignore_errors=True)

    def abandon(self) -> None:
        """Let go of a worker that belongs to the process this one was forked from."""
        self._control.close()
        self._process.returncode = 0  # no process of ours: not to be waited for


def _folders(packages: tuple[str, ...]) -> list[str]:
    """Where the offered packages are; those that are not installed are left out."""
    specs = (find_spec(package) for package in packages)
    return [os.path.dirname(spec.origin) for spec in specs if spec and spec.origin]


def _hand(line: socket.socket, message: dict[str, Any]) -> None:
    line.settimeout(GRACE)
    data = json.dumps(message).encode("ascii")
    with suppress(OSError):  # it ended before it read all: the report says how
        line.sendall(len(data).to_bytes(4, "big") + data)


def _last_word(line: socket.socket) -> Any:
    """The tests' message; None when they ended without one."""
    line.setblocking(False)
    try:
        return Frames(line.fileno()).receive()
    except (Gone, Unreadable, OSError):
        return None


def _received(control: socket.socket) -> dict[str, Any]:
    try:
        length = int.from_bytes(_exactly(control, 4), "big")
        message = json.loads(_exactly(control, length))
    except (OSError, ValueError) as error:
        raise WorkerFailed(f"the worker gave no report: {error}") from error
    return message if isinstance(message, dict) else {}


def _exactly(control: socket.socket, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        part = control.recv(min(length - len(data), 1 << 20))
        if not part:
            raise WorkerFailed("the worker died")
        data += part
    return bytes(data)
