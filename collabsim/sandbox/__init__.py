"""The sandbox: runs code that models wrote, and nothing that it does can pass, escape or slow what comes after it.

In: a program, and tests or input (`Examination`, `Script`). Out: a `Report` of `Sandbox.run`. This is the door: other rooms
import from here only. The modules behind it:

    worker_pool, worker     in the user's process: a few warm workers, one request at a time each
    worker_process          a worker: a process without the user's data that forks a pair of processes for each program
    candidate, examiner     the pair: the program, and the tests; they exchange values (`wire`, `peer`), never objects
    watch, verdict          the pair's use of time and space, and what its end means
    confinement             what both are put under: `landlock`, `seccomp`, `allowed_calls`, `limits`, `namespaces`
    floor                   what this machine offers, and what to do when it is too little

What is guaranteed wherever code is run at all (the floor):

- A program never shares a process with its tests, so it cannot patch, read or forge them: all it can do is answer calls with
  plain data. Success is a nonce that the tests' process sends after the last assertion; the program's never held it.
- It makes no process, runs no other program, opens no socket, signals and traces nobody, reads the standard library and
  numpy only, and writes in one folder that is removed. It ends with its worker, and a worker with the user's process.
- Limits on processor time, time by the clock, memory, size of files and folder, output, threads and descriptors.

In addition, where the system allows: a user of its own (root only), namespaces for processes, network and mounts, and a work
folder in memory whose size the kernel holds; on the floor that size is looked at ten times a second. Not guaranteed: that
tests which compare objects of the program's own classes with each other (never with plain values) mean anything, that time
cannot be measured, or that a hole in the kernel's own system calls stays closed.

Left out on purpose: other languages than Python, and other systems than Linux.

Workers import this folder as a package `sandbox` of its own, without the rest of collabsim; so the door loads nothing before
it is asked for, and modules here name each other relatively.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .floor import SandboxReport, sandbox_report
    from .limits import Limits
    from .report import Examination, Report, Script
    from .worker_pool import Sandbox, shared_sandbox

_MODULES = {
    "Examination": "report",
    "Limits": "limits",
    "Report": "report",
    "Sandbox": "worker_pool",
    "SandboxReport": "floor",
    "Script": "report",
    "sandbox_report": "floor",
    "shared_sandbox": "worker_pool",
}

__all__ = [
    "Examination",
    "Limits",
    "Report",
    "Sandbox",
    "SandboxReport",
    "Script",
    "sandbox_report",
    "shared_sandbox",
]


def __getattr__(name: str) -> Any:
    """A name of the door, from the module that defines it."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
