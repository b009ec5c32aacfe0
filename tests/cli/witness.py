"""A simulated model that writes down every generation it is asked for, and may kill its own process.

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
from collabsim.models.simulated import SimulatedModel
from collabsim.request import Request
from collabsim.store import request_key

_begun = count(1)


class Witness(SimulatedModel):
    async def areply(self, request: Request) -> Reply:
        notebook = os.open(os.environ["WITNESS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(notebook, f"{request_key(self.identity, '0', request)}\n".encode())
        os.close(notebook)
        number, _, seconds = os.environ.get("KILL_AFTER", "0").partition(":")
        if next(_begun) == int(number):
            threading.Timer(float(seconds), os.kill, (os.getpid(), signal.SIGKILL)).start()
        return await super().areply(request)


def member(**parameters: Any) -> Witness:
    return Witness(**parameters)
