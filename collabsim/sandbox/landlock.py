"""Rules on files (Landlock): what a confined process may read, and the one folder that it may write.

In: folders and files. Out: a rule set, made once by a worker and entered by each process that it forks. Rules are on
the files themselves, not on names, so links lead nowhere. Source: Linux, `Documentation/userspace-api/landlock.rst`. Left
out on purpose: what Landlock does not cover (modes, owners, times, attributes); `allowed_calls.py` refuses those calls.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from contextlib import suppress

from .libc import system_call

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _PATH_BENEATH = 1, 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE = (1 << bit for bit in range(6))
_MAKE_DIR, _MAKE_REG = 1 << 7, 1 << 8
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_FILES_BY_ABI = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""How many of the rights on files (bits from 0) each version of the interface knows; later ones as the last."""

_TCP, _NETWORK_ABI = 0b11, 4
_SIGNALS_AND_ABSTRACT_SOCKETS, _SCOPE_ABI = 0b11, 6

READ = _READ_FILE | _READ_DIR
LIST = _READ_DIR
WRITE_DEVICE = _READ_FILE | _WRITE_FILE
CHANGES = _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _REFER | _TRUNCATE
WORK = READ | CHANGES
EVERYTHING = (1 << 16) - 1
_OF_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE


class _Rights(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scope", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("descriptor", ctypes.c_int32))


def version() -> int:
    """The version of the kernel's Landlock interface; 0 where there is none, or where it is switched off."""
    with suppress(OSError):
        return system_call(_CREATE_RULESET, None, 0, _VERSION)
    return 0


def rules(allowed: Iterable[tuple[str, int]], ruled: int = EVERYTHING) -> int:
    """A rule set that allows nothing but the given rights at or beneath the given paths; those that are missing are skipped.

    `ruled` names the rights that it speaks of; others it leaves to other rule sets. Returns its descriptor. Raises
    `OSError`.
    """
    abi = version()
    files = ruled & ((1 << _FILES_BY_ABI[min(abi, max(_FILES_BY_ABI))]) - 1)
    network = _TCP if abi >= _NETWORK_ABI else 0
    scope = _SIGNALS_AND_ABSTRACT_SOCKETS if abi >= _SCOPE_ABI else 0
    handled = _Rights(files, network, scope)
    size = 8 * (1 + (abi >= _NETWORK_ABI) + (abi >= _SCOPE_ABI))
    rule_set = system_call(_CREATE_RULESET, ctypes.byref(handled), size, 0)
    for path, rights in allowed:
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            _allow(rule_set, path, rights & files)
    return rule_set


def _allow(rule_set: int, path: str, rights: int) -> None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not os.path.isdir(path):
            rights &= _OF_A_FILE
        beneath = _Beneath(rights, descriptor)
        system_call(_ADD_RULE, rule_set, _PATH_BENEATH, ctypes.byref(beneath), 0)
    finally:
        os.close(descriptor)


def enter(rule_set: int) -> None:
    """Put the calling process under a rule set, for good. It must have given up new privileges. Raises `OSError`."""
    system_call(_RESTRICT_SELF, rule_set, 0)
