"""Equality of expressions, decided in a process of its own.

In: two expressions as trees, or two notations that only Math-Verify reads. Out: yes or no. What can be decided exactly
here is decided here; the rest goes to one worker process (`symbolic_worker.py`), which is started on first use, kept
warm, and limited in processor time and memory: an expression that exceeds the limits counts as not equal. It serves all
threads, is never shared with a forked child, and ends with this process, however that ends. Raises `ScoringError` when a
worker cannot be had twice in a row; that says nothing about the answers. Left out on purpose: the mathematics.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

from collabsim.errors import ScoringError
from collabsim.scorers.mathematics.expression_tree import Node, negative, order_key, value_of

WALL_SECONDS = 20.0
"""A reply that takes longer means that the machine is stuck; the worker's own limit is one second of processor time."""

LONGEST = 20_000
"""Characters of a request's expressions; more is not compared."""

_BOOT = "import runpy, sys; sys.path[:] = {path!r}; runpy.run_path({file!r})['serve']()"
_FILE = str(Path(__file__).with_name("symbolic_worker.py"))
"""Run by its path: importing it by name would load all of collabsim's tasks first."""


class _Died(Exception):
    """The worker ended without a reply."""


class _OverLimit(Exception):
    """The worker was ended by its limit of processor time."""


class EquivalenceWorker:
    """A worker process and the pipe to it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None

    def ask(self, request: dict[str, Any]) -> str:
        """The worker's verdict: same, different or undecided. Raises `ScoringError`."""
        line = json.dumps(request).encode() + b"\n"
        if len(line) > LONGEST:
            return "undecided"
        with self.lock:
            try:
                return self._tried(line)
            except _OverLimit:
                return "undecided"
            except (OSError, _Died) as error:
                raise ScoringError(
                    f"expressions cannot be compared: the worker process failed twice ({error}); "
                    "check the machine's memory and that `pip install math-verify` was done, then score again"
                ) from error

    def _tried(self, line: bytes) -> str:
        try:
            return self._asked(line)
        except (OSError, _Died):
            return self._asked(line)

    def _asked(self, line: bytes) -> str:
        try:
            process = self._running()
            assert process.stdin is not None
            process.stdin.write(line)
            process.stdin.flush()
            reply = json.loads(self._line(process))
        except (OSError, ValueError, _Died):
            code = self.close()
            if code == -getattr(signal, "SIGXCPU", 0):
                raise _OverLimit from None
            raise
        except BaseException:  # an interrupted wait must not leave its reply to the next request
            self.close()
            raise
        if "error" in reply:
            raise _Died(reply["error"])
        return str(reply["verdict"])

    def _running(self) -> subprocess.Popen[bytes]:
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _BOOT.format(path=sys.path, file=_FILE)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for this process
            )
        return self.process

    def _line(self, process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdout is not None
        until, received = time.monotonic() + WALL_SECONDS, b""
        while not received.endswith(b"\n"):
            left = until - time.monotonic()
            if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                raise _Died(f"no reply in {WALL_SECONDS:.0f} s")
            chunk = os.read(process.stdout.fileno(), 65_536)
            if not chunk:
                raise _Died("it ended")
            received += chunk
        return received

    def close(self) -> int | None:
        """End the worker; its exit code."""
        process, self.process = self.process, None
        if process is None:
            return None
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):  # what was not flushed has no reader any more
                    pipe.close()
        try:
            return process.wait(timeout=0.2)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def forget(self) -> None:
        """In a forked child: leave the parent's worker alone, and do not keep its pipe open."""
        self.lock = threading.Lock()
        process, self.process = self.process, None
        if process is not None:
            process.returncode = 0  # not this process's child
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    os.close(pipe.fileno())
                    _KEPT.append(pipe)


_KEPT: list[Any] = []
"""Objects of closed descriptors, kept so that they are never closed again when the number is another file's."""

WORKER = EquivalenceWorker()
atexit.register(WORKER.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WORKER.forget)


def equal_nodes(a: Node, b: Node, *, up_to_factor: bool = False) -> bool:
    """Whether two trees are equal for all values of their variables; `up_to_factor`: up to a constant factor not 0.

    Symmetric. Raises `ScoringError` when no worker can be had.
    """
    if a == b or (up_to_factor and a == negative(b)):
        return True
    if value_of(a) is not None and value_of(b) is not None:
        return up_to_factor and value_of(a) != 0 and value_of(b) != 0
    first, second = sorted((a, b), key=order_key)
    return _decided(first, second, up_to_factor) == "same"


def equal_notation(a: str, b: str) -> bool:
    """Whether Math-Verify reads two notations as the same. Symmetric. Raises `ScoringError`."""
    first, second = sorted((a, b))
    return first == second or _verified(first, second) == "same"


@lru_cache(maxsize=1 << 12)
def approximate(node: Node) -> Fraction | None:
    """The real value of a constant to 20 digits; None when it has none. Raises `ScoringError`."""
    verdict = WORKER.ask({"value": _plain(node)})
    return None if verdict == "undecided" else Fraction(verdict)


@lru_cache(maxsize=1 << 16)
def _decided(a: Node, b: Node, up_to_factor: bool) -> str:
    return WORKER.ask({"a": _plain(a), "b": _plain(b), "up_to_factor": up_to_factor})


@lru_cache(maxsize=1 << 16)
def _verified(a: str, b: str) -> str:
    return WORKER.ask({"first": a, "second": b})


def _plain(node: Node) -> list[Any]:
    """A node as JSON; integers in hexadecimal, which Python reads and writes at any length."""
    return [
        _plain(part) if isinstance(part, tuple) else f"{part:x}" if isinstance(part, int) else part for part in node
    ]
