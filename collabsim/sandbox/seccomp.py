"""The filter of system calls (seccomp) that a confined process cannot take off.

In: the process's own id. Out: nothing; afterwards only the calls of `allowed_calls.py` work. The filter is classic BPF: a
list of instructions on the number, architecture and arguments of a call. Source: Linux, `Documentation/userspace-api/
seccomp_filter.rst`, and `include/uapi/linux/{seccomp,filter,audit}.h`. Left out on purpose: architectures whose call numbers
are not in the table; there the sandbox is below its floor.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct

from .allowed_calls import ALLOWED, CHECKED
from .libc import prctl

MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Column of the call tables, and the kernel's name for the architecture (AUDIT_ARCH_*)."""

_LOAD, _EQUAL, _ABOVE, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_KILL, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_X32 = 0x40000000
"""Bit of the x32 calls, a second table of x86_64 that would go around the first."""

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER_MODE = 38, 22, 2
_CLONE_THREAD = 0x00010000
_ACCESS_MODE, _TRUNCATE = 0o3, 0o1000
_UNIX, _SIGKILL = 1, 9
_PR_SET_NAME, _PR_GET_NAME = 15, 16
_SWITCHES = (0x5421, 0x5450, 0x5451)
"""FIONBIO, FIONCLEX, FIOCLEX: what Python itself asks of a descriptor."""

Instruction = tuple[int, int, int, int]
"""Code, jump if true, jump if false, constant."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def supported() -> bool:
    """Whether the call numbers of this machine are known."""
    return platform.machine() in MACHINES


def install(own_pid: int) -> None:
    """Put the calling thread, and all threads and programs after it, under the filter. Raises `OSError`."""
    code = b"".join(struct.pack("<HBBI", *instruction) for instruction in program(own_pid, platform.machine()))
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
    prctl(_PR_SET_SECCOMP, _FILTER_MODE, ctypes.byref(_Program(len(code) // 8, code)))


def program(own_pid: int, machine: str) -> list[Instruction]:
    """The filter for a process of that id on that machine (a key of `MACHINES`)."""
    column, architecture = MACHINES[machine]
    code: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        code += [(_ABOVE, 0, 1, _X32), (_RETURN, 0, 0, _KILL)]
    for name, rule in _rules(own_pid).items():
        number = CHECKED[name][column]
        if number is not None:
            code += [(_EQUAL, 0, len(rule), number), *rule]
    for numbers in ALLOWED.values():
        if (number := numbers[column]) is not None:
            code += [(_EQUAL, 0, 1, number), _returns(_ALLOW)]
    return [*code, _fails(errno.EPERM)]


def _rules(own_pid: int) -> dict[str, list[Instruction]]:
    """What is looked at beyond the number, by call. Each rule ends in a verdict."""
    return {
        # Landlock before ABI 3 lets a file that is only read be cut to nothing.
        "open": _no_cut_of_read_only(1),
        "openat": _no_cut_of_read_only(2),
        "creat": [_returns(_ALLOW)],
        # Arguments behind a pointer cannot be looked at; callers fall back to `openat` and `clone`.
        "openat2": [_fails(errno.ENOSYS)],
        "clone3": [_fails(errno.ENOSYS)],
        "clone": [_argument(0), (_ANY_BIT, 0, 1, _CLONE_THREAD), _returns(_ALLOW), _fails(errno.EPERM)],
        "kill": _to_itself(own_pid, 1),
        "tgkill": _to_itself(own_pid, 2),
        "prlimit64": _if_equal(0, (0,), errno.EPERM),
        "ioctl": _if_equal(1, _SWITCHES, errno.ENOTTY),
        "socketpair": _if_equal(0, (_UNIX,), errno.EPERM),
        "prctl": _if_equal(0, (_PR_SET_NAME, _PR_GET_NAME), errno.EPERM),
    }


def _no_cut_of_read_only(flags: int) -> list[Instruction]:
    return [
        _argument(flags),
        (_AND, 0, 0, _ACCESS_MODE | _TRUNCATE),
        (_EQUAL, 0, 1, _TRUNCATE),
        _fails(errno.EPERM),
        _returns(_ALLOW),
    ]


def _to_itself(own_pid: int, signal: int) -> list[Instruction]:
    """SIGKILL is left to the outside: an unexplained one is then no doing of the program."""
    return [_argument(signal), (_EQUAL, 0, 1, _SIGKILL), _fails(errno.EPERM), *_if_equal(0, (own_pid,), errno.EPERM)]


def _if_equal(index: int, values: tuple[int, ...], code: int) -> list[Instruction]:
    tests = [(_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
    return [_argument(index), *tests, _fails(code), _returns(_ALLOW)]


def _argument(index: int) -> Instruction:
    """Load the lower half of an argument: all that is looked at here are ints of 32 bits."""
    return (_LOAD, 0, 0, _FIRST_ARGUMENT + 8 * index)


def _returns(verdict: int) -> Instruction:
    return (_RETURN, 0, 0, verdict)


def _fails(code: int) -> Instruction:
    return _returns(_ERRNO | code)
