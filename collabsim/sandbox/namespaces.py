"""A view of the system of its own for each worker (namespaces), where the system allows one.

In: nothing. Out: which namespaces were had. They come on top of Landlock and seccomp, which hold everywhere: a worker without
network devices, without others' processes in its `/proc`, and with a work folder in memory whose size the kernel
limits and which vanishes with it. Source: the manual pages namespaces(7), user_namespaces(7), pid_namespaces(7). Left out
on purpose: a root file system of its own; Landlock already names every file that may be opened.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from .descriptors import close_all_but
from .folders import remove
from .libc import libc, prctl

FLAGS = {
    "user": 0x10000000,
    "pid": 0x20000000,
    "net": 0x40000000,
    "mount": 0x00020000,
    "ipc": 0x08000000,
    "uts": 0x04000000,
}
CHOICES = (("pid", "mount", "net", "ipc", "uts"), ("net", "ipc", "uts"), ())
"""Sets to try, the strongest first; a user namespace comes with each where the user is not root."""

_PRIVATE = 0x4000 | 0x40000  # MS_REC | MS_PRIVATE
_BARE = 2 | 4 | 8  # MS_NOSUID | MS_NODEV | MS_NOEXEC
_PR_SET_PDEATHSIG, _SIGKILL = 1, 9


def enter(work: Path, size_mb: int) -> tuple[str, ...]:
    """Move the calling process, which must have one thread, into the strongest set of namespaces that works here.

    With a pid namespace the caller goes on in a child, its first process; the parent only waits, and removes the folder
    above `work` at the end, which the child cannot since `work` is a file system of its own then. Returns the names.
    """
    for names in CHOICES:
        wanted = names if os.geteuid() == 0 or not names else ("user", *names)
        if not wanted or _works(wanted, work, size_mb):
            _enter(wanted, work, size_mb, at_end=lambda: remove(work.parent))
            return wanted
    return ()


def _works(names: tuple[str, ...], work: Path, size_mb: int) -> bool:
    """Whether a child can enter these namespaces; what half works must not be found out by the worker itself."""
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            _enter(names, work, size_mb, at_end=lambda: None)
            os._exit(0)
        os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def _enter(names: tuple[str, ...], work: Path, size_mb: int, at_end: Callable[[], None]) -> None:
    if not names:
        return
    user, group = os.geteuid(), os.getegid()
    # Mounts are for the child alone: its parent removes what they cover.
    _check(libc().unshare(sum(FLAGS[name] for name in names if name != "mount")))
    if "user" in names:
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
    if "pid" in names:
        _go_on_as_first_process(at_end)
    if "mount" in names:
        _check(libc().unshare(FLAGS["mount"]))
        _mount(None, "/", None, _PRIVATE, None)
        _mount("proc", "/proc", "proc", _BARE, None)
        options = f"size={size_mb}m,nr_inodes=8192,mode=0711"
        _mount("tmpfs", str(work), "tmpfs", _BARE, options)


def _go_on_as_first_process(at_end: Callable[[], None]) -> None:
    """Fork; the child returns, the parent waits for it, does `at_end`, and ends as it did."""
    parent_alive, held = os.pipe()
    child = os.fork()
    if child:
        with suppress(OSError):
            close_all_but({0, 1, 2, held})  # not to hold the user's line open
        status = os.waitpid(child, 0)[1]
        at_end()
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    prctl(_PR_SET_PDEATHSIG, _SIGKILL)
    os.close(held)
    os.set_blocking(parent_alive, False)
    with suppress(BlockingIOError):
        if os.read(parent_alive, 1) == b"":  # it died before the line above
            os._exit(1)
    os.close(parent_alive)


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None) -> None:
    encoded = [None if text is None else text.encode() for text in (source, target, kind, options)]
    _check(libc().mount(encoded[0], encoded[1], encoded[2], flags, encoded[3]))


def _check(result: int) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
