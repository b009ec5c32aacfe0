"""The floor: what a machine must offer before code that a model wrote is run on it.

In: nothing. Out: what is there, and what to do when it is too little. The floor needs no privilege: Landlock for files,
seccomp for everything else, resource limits. Below it nothing is run at all.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache

from collabsim.errors import PrerequisiteError


@dataclass(frozen=True, slots=True)
class SandboxReport:
    """What the sandbox can rest on here."""

    ready: bool
    available: str
    remedy: str = ""
    """What to do; empty when ready."""


@cache
def sandbox_report() -> SandboxReport:
    """Whether code can be run here, found out by looking, not by running anything."""
    if sys.platform != "linux":
        system = {"darwin": "macOS", "win32": "Windows"}.get(sys.platform, sys.platform)
        return SandboxReport(
            False, f"none on {system}", "score code on Linux 5.13 or later (a container or VM will do)"
        )
    from . import landlock, seccomp

    if not seccomp.supported():
        return SandboxReport(False, "unknown processor", "score code on an x86_64 or aarch64 machine")
    version = landlock.version()
    if version == 0:
        return SandboxReport(
            False,
            "no Landlock",
            "use Linux 5.13 or later with lsm=landlock,... among the boot parameters; in a container, allow the landlock "
            "system calls in its seccomp profile",
        )
    return SandboxReport(True, f"Landlock ABI {version}, seccomp")


def require_floor() -> None:
    """Raises `PrerequisiteError` where code cannot be run safely."""
    report = sandbox_report()
    if not report.ready:
        raise PrerequisiteError(
            f"code is only run in the sandbox, which this machine cannot hold ({report.available}); {report.remedy}"
        )
