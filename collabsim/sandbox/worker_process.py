"""A worker: a small process that forks the processes of each program, and never sees a program or its tests itself.

In: requests over a stream, each with a descriptor that leads to the user's process. Out: a report each. The worker holds no
data of the user's, so that the copies of its memory that programs run in hold none. It ends when the stream does.
"""

from __future__ import annotations

import atexit
import base64
import gc
import importlib
import json
import os
import socket
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from . import candidate, confinement, examiner, folders, namespaces
from .limits import Limits
from .watch import Watch
from .wire import Frames, Gone

FIRST_USER, USERS = 60578, 64
"""Two users for each worker, out of a range that systemd's table of ids calls unused; only root changes users."""

PRELOADED = (
    *("abc", "array", "bisect", "calendar", "cmath", "collections.abc", "contextlib", "copy", "csv", "dataclasses"),
    *(
        "datetime",
        "decimal",
        "enum",
        "fractions",
        "functools",
        "hashlib",
        "heapq",
        "inspect",
        "io",
        "itertools",
        "json",
    ),
    *("math", "numbers", "operator", "pprint", "queue", "random", "re", "statistics", "string", "struct", "textwrap"),
    *("threading", "time", "traceback", "typing", "unicodedata", "uuid", "zlib"),
)
"""Modules that solutions import most; they come with the fork."""


def main() -> None:
    """Serve requests on the stream whose descriptor is the first argument; the second holds the settings."""
    line, settings = int(sys.argv[1]), json.loads(sys.argv[2])
    work = Path(settings["work"])
    try:
        had = namespaces.enter(work, settings["work_mb"]) if settings["namespaces"] else ()
        for module in PRELOADED:
            importlib.import_module(module)
        confined = confinement.prepare(work, map(Path, settings["packages"]), had)
    except Exception as error:
        Frames(line).send({"failed": f"{type(error).__name__}: {error}"})
        return
    if confined.drops_user:
        work.chmod(0o711)
    gc.freeze()  # shared memory stays shared
    control = socket.socket(fileno=line)
    with suppress(Gone, BrokenPipeError):
        Frames(line).send({"ready": had})
        while True:
            _serve(control, confined, work)
    folders.remove(work.parent)


def _serve(control: socket.socket, confined: confinement.Confinement, work: Path) -> None:
    """Answer one request."""
    head, descriptors, _, _ = socket.recv_fds(control, 4, 1)
    if not head:
        raise Gone
    length = int.from_bytes(head + control.recv(4 - len(head), socket.MSG_WAITALL), "big")
    request = json.loads(control.recv(length, socket.MSG_WAITALL))
    watch = _start(control.fileno(), request, descriptors[0], confined, work)
    try:
        watch.until_over()
    finally:
        for pipe in (watch.output, watch.errors, watch.faults):
            os.close(pipe)
        folders.remove(watch.folder)
    if watch.ended_by == "hang-up":
        raise Gone
    printed = [base64.b64encode(watch.printed[pipe]).decode() for pipe in (watch.output, watch.errors)]
    report = {"ends": watch.ends, "ended_by": watch.ended_by, "waited": watch.waited, "fault": watch.fault}
    Frames(control.fileno()).send({**report, "printed": printed})


def _start(line: int, request: dict[str, Any], exam: int, confined: confinement.Confinement, work: Path) -> Watch:
    """Fork the processes of a request: the program first, so that nothing of its tests is in its memory."""
    limits = Limits(**request["limits"])
    user = FIRST_USER + 2 * (request["number"] % USERS)
    folder = Path(tempfile.mkdtemp(dir=work))
    if confined.drops_user:
        os.chown(folder, user, user)
    (output, printing), (errors, complaining) = os.pipe(), os.pipe()
    faults, faulty = os.pipe()
    scripted = request["mode"] == "script"
    here, there = socket.socketpair()
    program_line = exam if scripted else here.fileno()
    parent = os.getpid()

    def confine_program() -> None:
        os.dup2(printing, 1)
        os.dup2(complaining, 2)
        os.chdir(folder)
        tempfile.tempdir = str(folder)
        confined.enter(limits, user, [program_line, faulty], parent, folder)

    def confine_tests() -> None:
        os.chdir("/")
        confined.enter(limits, user + 1, [exam, there.fileno(), faulty], parent, None)

    answer = candidate.run_script if scripted else candidate.answer_calls
    processes = {"program": _fork(confine_program, lambda: answer(program_line), faulty)}
    for end in (printing, complaining):
        os.close(end)
    if not scripted:
        processes["tests"] = _fork(confine_tests, lambda: examiner.examine(exam, there.fileno()), faulty)
    for descriptor in (here, there):
        descriptor.close()
    for end in (exam, faulty):
        os.close(end)
    return Watch(processes, output, errors, faults, line, folder, limits)


def _fork(confine: Callable[[], None], run: Callable[[], None], faulty: int) -> int:
    """The id of a child that confines itself, does `run`, prints what that raises, and ends as a Python program would.

    What goes wrong before it is confined is written to `faulty`: it is no doing of the program, which never starts then.
    """
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        try:
            confine()
        except BaseException as error:
            os.write(faulty, f"{type(error).__name__}: {error}".encode())
            os._exit(code)
        os.close(faulty)
        run()
        code = 0
    except SystemExit as error:
        code = _exit_code(error)
    except BaseException:
        with suppress(BaseException):
            traceback.print_exc()
    _finish()
    os._exit(code)


def _finish() -> None:
    """What an interpreter does at its end: wait for threads, run what was registered, write what is buffered."""
    for step in (threading._shutdown, atexit._run_exitfuncs, sys.stdout.flush, sys.stderr.flush):  # type: ignore[attr-defined]
        with suppress(BaseException):
            step()


def _exit_code(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return (error.code or 0) & 0xFF
    with suppress(BaseException):
        print(error.code, file=sys.stderr)  # noqa: T201
    return 1
