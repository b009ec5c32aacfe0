"""The process of the program: loads it and answers the calls of its tests, or runs it as a script.

In: a stream to the tests' process (or, for a script, to the user's). Out: answers, or printed text. Nothing here is
trusted: a program may take this whole process over, and gains nothing, because the process holds no tests, no expected
values and no way to say that something passed.
"""

from __future__ import annotations

import builtins
import os
import random
import sys
import types
from typing import Any

from .peer import Peer
from .wire import Frames, Gone

MODULE = "solution"


def answer_calls(descriptor: int) -> None:
    """Load what is asked for and answer calls until the tests' process is gone."""
    module = _fresh_module(MODULE)
    peer = Peer(Frames(descriptor), guarded=False, names=module.__dict__)
    peer.offer("load", lambda source: _load(source, module))
    try:
        peer.serve()
    except Gone:
        os._exit(0)


def run_script(descriptor: int) -> None:
    """Run the one program that comes over the stream as `__main__`, with the input that comes with it."""
    request = Frames(descriptor).receive()
    os.close(descriptor)
    with open("input", "w+", encoding="utf-8", newline="") as text:
        text.write(request["input"])
        text.flush()
        os.lseek(text.fileno(), 0, os.SEEK_SET)
        os.dup2(text.fileno(), 0)
    os.unlink("input")
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    _load(request["program"], _fresh_module("__main__"))


def _fresh_module(name: str) -> types.ModuleType:
    """An empty module, with what `site` would have added, and with generators in a known state."""
    random.setstate(random.Random(0).getstate())
    builtins.exit = builtins.quit = sys.exit  # type: ignore[assignment]
    sys.argv = [f"{name}.py"]
    module = sys.modules[name] = types.ModuleType(name)
    return module


def _load(source: str, module: types.ModuleType) -> None:
    file = f"{MODULE}.py"
    namespace: dict[str, Any] = module.__dict__
    exec(compile(source, file, "exec", dont_inherit=True), namespace)
