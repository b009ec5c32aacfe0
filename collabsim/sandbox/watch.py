"""Watching one program and its tests until both have ended.

In: their processes and the pipe of what the program prints. Out: how they ended, and the output. Everything beyond the
limits that the kernel does not count (time by the clock, output, size of the folder) is ended here. Left out on purpose:
what it means for a score.
"""

from __future__ import annotations

import os
import select
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .folders import usage
from .limits import MEBIBYTE, Limits

TICK = 0.1
"""Seconds between looks at the folder."""

PARTING = 0.2
"""Seconds that a program may take to end by itself after its tests have."""

LONGEST_WAIT = 5
"""Multiple of the limit by the clock after which a program ends even if it only waited for a processor."""


@dataclass(slots=True)
class Watch:
    """The processes of one request. The last of `processes` decides when it is over."""

    processes: dict[str, int]
    """Ids by part: `program`, `tests`."""
    output: int
    """Descriptor that the program's standard output comes from."""
    errors: int
    """Descriptor that its standard error comes from."""
    faults: int
    """Descriptor that says what went wrong before the processes were confined."""
    line: int
    """Descriptor whose hang-up means that the user's process is gone."""
    folder: Path
    limits: Limits
    ended_by: str = ""
    """The limit that was passed: `wall`, `output`, `folder`; or `hang-up`."""
    fault: str = ""
    waited: float = 0.0
    """Seconds that the processes were ready to run and had no processor."""
    ends: dict[str, dict[str, Any]] = field(default_factory=dict)
    printed: dict[int, bytearray] = field(default_factory=dict)
    """What came, by descriptor; the limit is on all together."""

    def until_over(self) -> None:
        """Wait for the end, or bring it about. Afterwards no process is left."""
        last = list(self.processes)[-1]
        handles = {os.pidfd_open(pid): part for part, pid in self.processes.items()}
        try:
            self._wait(handles, last)
            self._let_end(handles)
        finally:
            for handle in handles:
                os.close(handle)
            self._end_all()
        self._drain()
        self.fault = os.read(self.faults, 1000).decode("utf-8", "replace")

    def _wait(self, handles: dict[int, str], last: str) -> None:
        started = last_look = time.monotonic()
        seen = 0.0  # the clock, without stretches in which this process itself had no turn (or the machine none)
        poll = select.poll()
        for pipe in (self.output, self.errors):
            poll.register(pipe, select.POLLIN)
        poll.register(self.line, select.POLLRDHUP)
        for handle in handles:
            poll.register(handle, select.POLLIN)
        next_look = time.monotonic() + TICK
        while not self.ended_by and last not in self.ends:
            for descriptor, event in poll.poll(TICK * 1000):
                if descriptor == self.line:
                    self.ended_by = "hang-up"
                elif descriptor in handles:
                    poll.unregister(descriptor)
                    self._reap(handles[descriptor])
                elif not self._read_output(descriptor) and event & select.POLLHUP:
                    poll.unregister(descriptor)
            now = time.monotonic()
            seen, last_look = seen + min(now - last_look, 2 * TICK), now
            if now >= next_look and last not in self.ends:
                next_look = now + TICK
                self._look_at_folder()
                self._look_at_clock(seen, now - started)

    def _look_at_clock(self, seen: float, passed: float) -> None:
        """On a busy machine a program waits for a processor; that is no time of its own."""
        self.waited = sum(waited_for_processor(pid) for part, pid in self.processes.items() if part not in self.ends)
        most = self.limits.wall_seconds
        if seen > most + self.waited or passed > LONGEST_WAIT * most:
            self.ended_by = self.ended_by or "wall"

    def _let_end(self, handles: dict[int, str]) -> None:
        """Give what hangs on a closed line a moment to end by itself, so that how it ended is its own and not ours."""
        end = time.monotonic() + PARTING
        while not self.ended_by and (left := [handle for handle, part in handles.items() if part not in self.ends]):
            poll = select.poll()
            for handle in left:
                poll.register(handle, select.POLLIN)
            ended = poll.poll(max(0.0, end - time.monotonic()) * 1000)
            for handle, _ in ended:
                self._reap(handles[handle])
            if not ended:
                return

    def _look_at_folder(self) -> None:
        size, entries = usage(self.folder, self.limits.folder_entries)
        if size > self.limits.folder_mb * MEBIBYTE or entries > self.limits.folder_entries:
            self.ended_by = self.ended_by or "folder"

    def _read_output(self, pipe: int) -> bool:
        """Take what is printed, up to the limit. False at the end."""
        part = os.read(pipe, 1 << 16)
        self.printed.setdefault(pipe, bytearray()).extend(part)
        if sum(map(len, self.printed.values())) > self.limits.output_kb * 1024:
            self.ended_by = self.ended_by or "output"
            return False
        return bool(part)

    def _drain(self) -> None:
        """Take what is left in the pipes; nobody writes to them any more."""
        for pipe in (self.output, self.errors):
            while self._read_output(pipe):
                pass

    def _end_all(self) -> None:
        for part, pid in self.processes.items():
            if part not in self.ends:
                ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                os.kill(pid, signal.SIGKILL)  # not reaped yet, so the id is still its own
                self._reap(part, killed=ended is None)

    def _reap(self, part: str, *, killed: bool = False) -> None:
        _, status, used = os.wait4(self.processes[part], 0)
        code = os.waitstatus_to_exitcode(status)
        cpu = used.ru_utime + used.ru_stime
        self.ends[part] = {"code": code, "killed": killed and code == -signal.SIGKILL, "cpu": round(cpu, 4)}


def waited_for_processor(pid: int) -> float:
    """Seconds that a process was ready to run without running; 0 where the kernel does not say."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
