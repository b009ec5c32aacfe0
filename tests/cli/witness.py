"""Models that write down every generation they are asked for, and may kill their own process.

`WITNESS` names the notebook, a file that outlives the process; `KILL_AFTER=n:seconds` sends SIGKILL that long after the
n-th generation of this process was begun.
"""

from __future__ import annotations

import os
import signal
import threading
from itertools import count
from typing import Any

from collabsim.episode import Reply
from collabsim.models.local.local_model import LocalModel
from collabsim.models.simulation.simulated import SimulatedModel
from collabsim.request import Request
from collabsim.store import request_key

_begun = count(1)


def note(identity: str, request: Request) -> None:
    """Write down that a generation begins, and set the clock of the kill if it is the one."""
    notebook = os.open(os.environ["WITNESS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(notebook, f"{request_key(identity, '0', request)}\n".encode())
    os.close(notebook)
    number, _, seconds = os.environ.get("KILL_AFTER", "0").partition(":")
    if next(_begun) == int(number):
        threading.Timer(float(seconds), os.kill, (os.getpid(), signal.SIGKILL)).start()


class Witness(SimulatedModel):
    async def areply(self, request: Request) -> Reply:
        note(self.identity, request)
        return await super().areply(request)


class LocalWitness(LocalModel):
    async def areply(self, request: Request) -> Reply:
        note(self.identity, request)
        return await super().areply(request)


def member(**parameters: Any) -> Witness:
    return Witness(**parameters)


def local_member(**parameters: Any) -> LocalWitness:
    return LocalWitness(**parameters)
