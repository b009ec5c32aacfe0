"""Small models for the tests of the store: they count their calls, and speak when they are let."""

import asyncio
import threading

from collabsim.episode import Reply
from collabsim.request import Message, Request, Sampling


class Speaker:
    """Says which call of it this is. With `closed=True` it waits for `open.set()` before it speaks."""

    def __init__(self, identity="sha256:speaker", closed=False, failures=0):
        self.identity = identity
        self.revision = "0"
        self.calls = 0
        self.failures = failures
        self.started = threading.Event()
        self.cancelled = threading.Event()
        self.open = threading.Event()
        if not closed:
            self.open.set()

    async def areply(self, request: Request) -> Reply:
        self.calls += 1
        number = self.calls
        self.started.set()
        try:
            while not self.open.is_set():
                await asyncio.sleep(0.001)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        if number <= self.failures:
            raise ConnectionError(f"line dropped at call {number}")
        return Reply(f"call {number} says {request.messages[-1].content}")


def question(text="2 + 2?", *, temperature=0.7, seed=0, draw=0, **sampling) -> Request:
    return Request((Message("user", text),), Sampling(temperature=temperature, **sampling), seed, draw)
