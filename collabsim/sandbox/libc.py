"""The C library's door to system calls that Python does not offer.

In: numbers and buffers. Out: results; a failed call raises `OSError`. The few calls that are made this way (Landlock,
seccomp, prctl) have no well-kept package that a scorer could depend on.
"""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any


@functools.cache
def libc() -> ctypes.CDLL:
    """The C library of this process."""
    return ctypes.CDLL(None, use_errno=True)


def system_call(number: int, *arguments: Any) -> int:
    """The result of a raw system call. Raises `OSError`."""
    libc().syscall.restype = ctypes.c_long
    return _checked(libc().syscall(ctypes.c_long(number), *map(_wide, arguments)))


def prctl(option: int, *arguments: Any) -> int:
    """The result of `prctl(option, ...)`. Raises `OSError`."""
    padded = (*arguments, 0, 0, 0, 0)[:4]
    return _checked(libc().prctl(ctypes.c_int(option), *map(_wide, padded)))


def _wide(argument: Any) -> Any:
    """Whole words: a variadic function reads the upper half of an argument too."""
    return ctypes.c_ulong(argument) if isinstance(argument, int) else argument


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(result)
