"""The run that a node is part of.

Protocols get it as LangGraph's runtime context; foreign graphs, which may use that slot themselves, get it through a context
variable. `context_of` reads whichever is set, and returns a playground outside any run.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from collabsim.context import RunContext
from collabsim.errors import ProtocolError
from collabsim.plugins import load, registered

PLAYGROUND = "collabsim.playground"
"""Entry-point group of functions that make a context for graphs that are opened outside any run."""

CURRENT_RUN: ContextVar[RunContext | None] = ContextVar("collabsim_run", default=None)


def context_of(runtime: Any) -> RunContext:
    """The run that a node is part of, from LangGraph's runtime or from the context variable.

    Outside any run (a graph opened in LangGraph's own tools) it is a playground of simulated models.
    """
    context = getattr(runtime, "context", None)
    if isinstance(context, RunContext):
        return context
    current = CURRENT_RUN.get()
    if current is not None:
        return current
    return _outside()


@lru_cache(maxsize=1)
def _outside() -> RunContext:
    """The context made by an entry point of `PLAYGROUND`: by name, since its module imports everything that nodes use."""
    for point in registered(PLAYGROUND).values():
        make: Callable[[], RunContext] = load(point, "the playground")
        return make()
    raise ProtocolError("a node was run outside any run, and there is no playground; run the graph through a System")
