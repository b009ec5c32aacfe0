"""Measure and train the worth of each model inside a system of several language models.

Define a protocol as a graph, run a coalition sweep, train a node in place. Names are loaded on first use, so that
importing this package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collabsim.asking import ABSENT, Ask, AskRole, ask
    from collabsim.coalitions.sweep import SweepResult, asweep, sweep
    from collabsim.context import RunContext, context_of
    from collabsim.episode import Call, Episode, Output, Reply
    from collabsim.foreign.seat_model import SeatModel
    from collabsim.models.identified import identified
    from collabsim.models.simulated import SimulatedModel
    from collabsim.pool import Pool, Seat
    from collabsim.protocols import protocol
    from collabsim.request import Message, Sampling, with_text
    from collabsim.state import State, last_replies, slot
    from collabsim.store import GenerationStore
    from collabsim.system import System
    from collabsim.tasks import Item, Score, Task, load_task, make_item, score_answer
    from collabsim.voting import plurality, share

_HOME = {
    "ABSENT": "asking",
    "Ask": "asking",
    "AskRole": "asking",
    "Call": "episode",
    "Episode": "episode",
    "GenerationStore": "store",
    "Item": "tasks",
    "Message": "request",
    "Output": "episode",
    "Pool": "pool",
    "Reply": "episode",
    "RunContext": "context",
    "Sampling": "request",
    "Score": "tasks",
    "Seat": "pool",
    "SeatModel": "foreign.seat_model",
    "SimulatedModel": "models.simulated",
    "State": "state",
    "SweepResult": "coalitions.sweep",
    "System": "system",
    "Task": "tasks",
    "ask": "asking",
    "asweep": "coalitions.sweep",
    "context_of": "context",
    "last_replies": "state",
    "identified": "models.identified",
    "load_task": "tasks",
    "make_item": "tasks",
    "plurality": "voting",
    "protocol": "protocols",
    "score_answer": "tasks",
    "share": "voting",
    "slot": "state",
    "sweep": "coalitions.sweep",
    "with_text": "request",
}

__all__ = [*sorted(_HOME)]


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'collabsim' has no attribute {name!r}")
    value = getattr(import_module(f"collabsim.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *_HOME]
