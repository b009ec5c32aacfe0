"""The filter of system calls, run in a small interpreter of its own: every call, on both architectures."""

from __future__ import annotations

import errno
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collabsim.sandbox.allowed_calls import ALLOWED, CHECKED
from collabsim.sandbox.seccomp import MACHINES, program

ALLOW, KILL = 0x7FFF0000, 0x80000000
PID = 4242
HEADERS = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")


def fails(code: int) -> int:
    return 0x00050000 | code


def verdict(machine: str, number: int, *arguments: int, architecture: int | None = None) -> int:
    """What the filter says: an interpreter of the classic BPF instructions that it is made of."""
    padded = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    words = {0: number, 4: MACHINES[machine][1] if architecture is None else architecture}
    words |= {16 + 8 * at: value & 0xFFFFFFFF for at, value in enumerate(padded)}
    code, at, held = program(PID, machine), 0, 0
    while True:
        operation, yes, no, constant = code[at]
        at += 1
        if operation == 0x20:
            held = words[constant]
        elif operation == 0x54:
            held &= constant
        elif operation == 0x06:
            return constant
        else:
            test = {0x15: held == constant, 0x35: held >= constant, 0x45: bool(held & constant)}[operation]
            at += yes if test else no


MACHINE = pytest.mark.parametrize("machine", list(MACHINES))


def number(name: str, machine: str) -> int:
    found = {**ALLOWED, **CHECKED}[name][MACHINES[machine][0]]
    if found is None:
        pytest.skip(f"{machine} has no {name}")
    return found


@MACHINE
@pytest.mark.parametrize("name", ["read", "write", "mmap", "futex", "exit_group", "getrandom", "newfstatat"])
def test_computing_is_allowed(machine, name):
    assert verdict(machine, number(name, machine)) == ALLOW


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        *(
            ("socket", (41, 198)),
            ("connect", (42, 203)),
            ("bind", (49, 200)),
            ("execve", (59, 221)),
            ("ptrace", (101, 117)),
        ),
        *(("process_vm_writev", (311, 271)), ("mount", (165, 40)), ("unshare", (272, 97)), ("setns", (308, 268))),
        *(("bpf", (321, 280)), ("keyctl", (250, 219)), ("io_uring_setup", (425, 425)), ("memfd_create", (319, 279))),
        *(("fchmodat", (268, 53)), ("fchownat", (260, 54)), ("utimensat", (280, 88)), ("setxattr", (188, 5))),
        *(("linkat", (265, 37)), ("symlinkat", (266, 36)), ("truncate", (76, 45)), ("setsid", (112, 157))),
        *(
            ("pidfd_send_signal", (424, 424)),
            ("userfaultfd", (323, 282)),
            ("shmget", (29, 194)),
            ("setpgid", (109, 154)),
        ),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_reaching_out_is_refused(name, numbers):
    for machine, (column, _) in MACHINES.items():
        assert verdict(machine, numbers[column]) == fails(errno.EPERM)


@MACHINE
@given(st.integers(min_value=0, max_value=0x3FFFFFFF))
def test_what_is_not_listed_is_refused(machine, called):
    column = MACHINES[machine][0]
    listed = {numbers[column] for numbers in (*ALLOWED.values(), *CHECKED.values())}
    if called not in listed:
        assert verdict(machine, called) == fails(errno.EPERM)


@MACHINE
def test_another_architecture_is_killed(machine):
    assert verdict(machine, 1, architecture=0x40000003) == KILL


def test_calls_of_the_second_table_are_killed():
    assert verdict("x86_64", 0x40000001) == KILL


@MACHINE
def test_threads_are_allowed_and_processes_are_not(machine):
    clone = number("clone", machine)
    assert verdict(machine, clone, 0x003D0F00) == ALLOW  # what glibc asks for a thread
    assert verdict(machine, clone, 0x01200011) == fails(errno.EPERM)  # what it asks for a fork
    assert verdict(machine, number("clone3", machine)) == fails(errno.ENOSYS)


@MACHINE
@pytest.mark.parametrize(("name", "place"), [("kill", 1), ("tgkill", 2)])
def test_signals_go_to_the_process_itself_only_and_never_kill(machine, name, place):
    def sent(to: int, what: int) -> int:
        arguments = [to, 0, 0]
        arguments[place] = what
        return verdict(machine, number(name, machine), *arguments)

    assert sent(PID, 15) == ALLOW
    for to, what in ((PID, 9), (PID + 1, 15), (0, 15), (-1, 15), (-PID, 15)):
        assert sent(to, what) == fails(errno.EPERM)


@MACHINE
def test_a_file_that_is_only_read_cannot_be_emptied(machine):
    openat, truncate = number("openat", machine), 0o1000
    assert verdict(machine, openat, 0, 0, truncate) == fails(errno.EPERM)
    assert verdict(machine, openat, 0, 0, truncate | 1) == ALLOW
    assert verdict(machine, openat, 0, 0, 0) == ALLOW


@MACHINE
def test_only_own_limits_pairs_of_unix_sockets_and_plain_switches_are_allowed(machine):
    for name, arguments, expected in (
        ("prlimit64", (0,), ALLOW),
        ("prlimit64", (1,), fails(errno.EPERM)),
        ("socketpair", (1,), ALLOW),
        ("socketpair", (2,), fails(errno.EPERM)),
        ("ioctl", (1, 0x5421), ALLOW),
        ("ioctl", (0, 0x5412), fails(errno.ENOTTY)),
        ("prctl", (15,), ALLOW),
        ("prctl", (4, 1), fails(errno.EPERM)),
    ):
        assert verdict(machine, number(name, machine), *arguments) == expected


def test_the_numbers_are_those_of_the_system():
    if not HEADERS.exists():
        pytest.skip("needs the kernel's headers for x86_64 (linux-libc-dev)")
    pairs = re.findall(r"#define __NR_(\w+)\s+(\d+)", HEADERS.read_text(encoding="ascii"))
    known = {name: int(value) for name, value in pairs}
    listed = {name: numbers[0] for name, numbers in {**ALLOWED, **CHECKED}.items() if numbers[0] is not None}
    assert {name: known.get(name, value) for name, value in listed.items()} == listed
