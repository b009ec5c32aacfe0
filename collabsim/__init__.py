"""Measure and train the worth of each model inside a system of several language models.

Define a protocol as a graph, run a coalition sweep, train a node in place. Names are loaded on first use, so that
importing this package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collabsim.coalitions.result import SweepResult, read_result
    from collabsim.coalitions.sweep import asweep, sweep
    from collabsim.context import Recorder, RunContext
    from collabsim.episode import Call, Episode, Output, Reply
    from collabsim.foreign.graph_system import from_graph
    from collabsim.foreign.seat_model import SeatModel
    from collabsim.item import Item, Score
    from collabsim.models.chat.identified import identified
    from collabsim.models.simulation.simulated import SimulatedModel
    from collabsim.nodes.asking import ABSENT, Ask, AskRole, ask
    from collabsim.nodes.current_run import context_of
    from collabsim.nodes.state import State, last_replies, slot
    from collabsim.nodes.voting import plurality, share
    from collabsim.pool import Pool, Seat
    from collabsim.protocols import protocol
    from collabsim.request import Message, Request, Sampling, with_text
    from collabsim.store import GenerationStore
    from collabsim.system.system import System
    from collabsim.tasks import Task, load_task, make_item, score_answer

    __version__: str

_HOME = {
    "ABSENT": "nodes.asking",
    "Ask": "nodes.asking",
    "AskRole": "nodes.asking",
    "Call": "episode",
    "Episode": "episode",
    "GenerationStore": "store",
    "Item": "item",
    "Message": "request",
    "Output": "episode",
    "Pool": "pool",
    "Recorder": "context",
    "Reply": "episode",
    "Request": "request",
    "RunContext": "context",
    "Sampling": "request",
    "Score": "item",
    "Seat": "pool",
    "SeatModel": "foreign.seat_model",
    "SimulatedModel": "models.simulation.simulated",
    "State": "nodes.state",
    "SweepResult": "coalitions.result",
    "System": "system.system",
    "Task": "tasks",
    "ask": "nodes.asking",
    "asweep": "coalitions.sweep",
    "context_of": "nodes.current_run",
    "from_graph": "foreign.graph_system",
    "identified": "models.chat.identified",
    "last_replies": "nodes.state",
    "load_task": "tasks",
    "make_item": "tasks",
    "plurality": "nodes.voting",
    "protocol": "protocols",
    "read_result": "coalitions.result",
    "score_answer": "tasks",
    "share": "nodes.voting",
    "slot": "nodes.state",
    "sweep": "coalitions.sweep",
    "with_text": "request",
}

__all__ = [
    "ABSENT",
    "Ask",
    "AskRole",
    "Call",
    "Episode",
    "GenerationStore",
    "Item",
    "Message",
    "Output",
    "Pool",
    "Recorder",
    "Reply",
    "Request",
    "RunContext",
    "Sampling",
    "Score",
    "Seat",
    "SeatModel",
    "SimulatedModel",
    "State",
    "SweepResult",
    "System",
    "Task",
    "__version__",
    "ask",
    "asweep",
    "context_of",
    "from_graph",
    "identified",
    "last_replies",
    "load_task",
    "make_item",
    "plurality",
    "protocol",
    "read_result",
    "score_answer",
    "share",
    "slot",
    "sweep",
    "with_text",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use."""
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("collabsim")
    elif name in _HOME:
        value = getattr(import_module(f"collabsim.{_HOME[name]}"), name)
    else:
        raise AttributeError(f"module 'collabsim' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
