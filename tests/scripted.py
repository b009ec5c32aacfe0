"""Models that say what a test wants, and count what they were asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from collabsim.episode import Reply, Usage
from collabsim.request import Request


class Scripted:
    """A typed model that answers by a function of the request; an exception that it returns is raised."""

    def __init__(self, name: str, say: Callable[[Request], str | Reply | BaseException] | str) -> None:
        self.identity = f"scripted:{name}"
        self.revision = "0"
        self.say = say
        self.asked: list[Request] = []

    async def areply(self, request: Request) -> Reply:
        self.asked.append(request)
        said = self.say(request) if callable(self.say) else self.say
        if isinstance(said, BaseException):
            raise said
        return said if isinstance(said, Reply) else Reply(said, usage=Usage(10, 5))

    async def ainvoke(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("collabsim asks typed models through areply")


def last_words(request: Request) -> str:
    return request.messages[-1].content
