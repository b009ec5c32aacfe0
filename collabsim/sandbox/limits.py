"""Limits on what a program may use up, set in the kernel.

In: numbers. Out: resource limits on the calling process. CPU time is what decides; wall-clock time, several times as long,
only ends what waits or sleeps, so that a busy machine makes nothing wrong.
"""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass
from pathlib import Path

MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one program. What goes beyond is ended and counts as wrong, with the limit as the reason."""

    cpu_seconds: int = 5
    """Processor time; whole seconds, since the kernel counts so."""
    wall_seconds: float = 20.0
    """Time by the clock for program and tests together."""
    memory_mb: int = 1024
    """Address space beyond what the interpreter has at the start, in MiB."""
    file_mb: int = 16
    """Size of any one file, in MiB."""
    folder_mb: int = 64
    """Size of all files together, in MiB."""
    folder_entries: int = 2000
    """Files and folders that may be there at once."""
    output_kb: int = 1024
    """Standard output and error together, in KiB."""
    open_files: int = 64
    threads: int = 64
    """Threads; other processes cannot be made at all."""


def apply(limits: Limits, *, shares_user: bool) -> None:
    """Put the calling process under `limits`, for good.

    `shares_user` says that the process runs as the user of other processes, which count among its threads then.
    """
    others = threads_of(os.getuid()) if shares_user else 0
    for what, most in (
        (resource.RLIMIT_CPU, limits.cpu_seconds),
        (resource.RLIMIT_AS, _address_space() + limits.memory_mb * MEBIBYTE),
        (resource.RLIMIT_FSIZE, limits.file_mb * MEBIBYTE),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_NPROC, others + limits.threads),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        # At the soft limit of CPU time a signal comes, which a program may ignore; a second later it is killed.
        resource.setrlimit(what, (most, most + 1 if what == resource.RLIMIT_CPU and hard < 0 else most))


def _address_space() -> int:
    """Bytes of address space of this process."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()


def threads_of(user: int) -> int:
    """Threads of all processes of a user, as far as they can be seen."""
    total = 0
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if process.stat().st_uid == user:
                    total += len(os.listdir(process / "task"))
            except OSError:  # it ended meanwhile
                continue
    return total
