"""Which system calls a confined process may make: names and numbers for x86_64 and aarch64.

Everything that is not listed fails with EPERM, so what a later kernel adds is refused too. Left out on purpose: whatever
makes processes, runs programs, opens sockets, signals or traces others, mounts, changes modes, owners, times or attributes
of files (Landlock does not cover these), makes links, holds memory outside the address space, or loads code into the
kernel. Files are Landlock's matter: `open` is allowed here and decided there.
"""

from __future__ import annotations

Numbers = tuple[int | None, int | None]
"""The number on x86_64 and on aarch64; None where the call does not exist."""

ALLOWED: dict[str, Numbers] = {
    # reading, writing, files of the own folder
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66), "pread64": (17, 67), "pwrite64": (18, 68),
    "preadv": (295, 69), "pwritev": (296, 70), "preadv2": (327, 286), "pwritev2": (328, 287), "close": (3, 57),
    "close_range": (436, 436), "stat": (4, None), "fstat": (5, 80), "lstat": (6, None), "newfstatat": (262, 79),
    "statx": (332, 291), "statfs": (137, 43), "fstatfs": (138, 44), "access": (21, None), "faccessat": (269, 48),
    "faccessat2": (439, 439), "readlink": (89, None), "readlinkat": (267, 78), "lseek": (8, 62), "getdents": (78, None),
    "getdents64": (217, 61), "getcwd": (79, 17), "chdir": (80, 49), "fchdir": (81, 50), "umask": (95, 166),
    "dup": (32, 23), "dup2": (33, None), "dup3": (292, 24), "pipe": (22, None), "pipe2": (293, 59), "fcntl": (72, 25),
    "flock": (73, 32), "fsync": (74, 82), "fdatasync": (75, 83), "ftruncate": (77, 46), "fadvise64": (221, 223),
    "mkdir": (83, None), "mkdirat": (258, 34), "rmdir": (84, None), "unlink": (87, None), "unlinkat": (263, 35),
    "rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276), "sendfile": (40, 71),
    "copy_file_range": (326, 285),
    # memory
    "mmap": (9, 222), "munmap": (11, 215), "mprotect": (10, 226), "mremap": (25, 216), "madvise": (28, 233),
    "brk": (12, 214), "msync": (26, 227), "mincore": (27, 232), "membarrier": (324, 283),
    # signals to itself, and time
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "rt_sigpending": (127, 136),
    "rt_sigtimedwait": (128, 137), "rt_sigsuspend": (130, 133), "sigaltstack": (131, 132), "alarm": (37, None),
    "setitimer": (38, 103), "getitimer": (36, 102), "pause": (34, None), "nanosleep": (35, 101),
    "clock_nanosleep": (230, 115), "clock_gettime": (228, 113), "clock_getres": (229, 114), "gettimeofday": (96, 169),
    "time": (201, None), "times": (100, 153), "timerfd_create": (283, 85), "timerfd_settime": (286, 86),
    "timerfd_gettime": (287, 87),
    # looking at itself
    "getpid": (39, 172), "getppid": (110, 173), "gettid": (186, 178), "getuid": (102, 174), "geteuid": (107, 175),
    "getgid": (104, 176), "getegid": (108, 177), "getgroups": (115, 158), "getresuid": (118, 148),
    "getresgid": (120, 150), "getpgrp": (111, None), "getpgid": (121, 155), "getsid": (124, 156),
    "getrlimit": (97, 163), "getrusage": (98, 165), "sysinfo": (99, 179), "uname": (63, 160), "getcpu": (309, 168),
    "getpriority": (140, 141), "capget": (125, 90),
    # threads and the end
    "sched_yield": (24, 124), "sched_getaffinity": (204, 123), "sched_getparam": (143, 121),
    "sched_getscheduler": (145, 120), "sched_get_priority_max": (146, 125), "sched_get_priority_min": (147, 126),
    "getrandom": (318, 278), "futex": (202, 98), "futex_waitv": (449, 449), "set_robust_list": (273, 99),
    "get_robust_list": (274, 100), "rseq": (334, 293), "set_tid_address": (218, 96), "exit": (60, 93),
    "exit_group": (231, 94), "restart_syscall": (219, 128), "arch_prctl": (158, None), "wait4": (61, 260),
    "waitid": (247, 95),
    # waiting, and pairs of sockets (asyncio wakes itself through one)
    "poll": (7, None), "ppoll": (271, 73), "select": (23, None), "pselect6": (270, 72), "epoll_create": (213, None),
    "epoll_create1": (291, 20), "epoll_ctl": (233, 21), "epoll_wait": (232, None), "epoll_pwait": (281, 22),
    "epoll_pwait2": (441, 441), "eventfd": (284, None), "eventfd2": (290, 19), "sendto": (44, 206),
    "recvfrom": (45, 207), "sendmsg": (46, 211), "recvmsg": (47, 212), "shutdown": (48, 210), "getsockopt": (55, 209),
    "setsockopt": (54, 208), "getsockname": (51, 204), "getpeername": (52, 205),
}

CHECKED: dict[str, Numbers] = {
    # allowed for some arguments only, or refused in a way that lets callers fall back; see `seccomp.py`
    "open": (2, None), "openat": (257, 56), "creat": (85, None), "clone": (56, 220), "clone3": (435, 435),
    "openat2": (437, 437), "kill": (62, 129), "tgkill": (234, 131), "ioctl": (16, 29), "prlimit64": (302, 261),
    "socketpair": (53, 199), "prctl": (157, 167),
}
