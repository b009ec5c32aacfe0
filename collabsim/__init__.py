"""Measure and train the worth of each model inside a system of several language models.

Define a protocol as a graph, run a coalition sweep, train a node in place. Names are loaded on first use, so that
importing this package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collabsim.lazy import lazy_names

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
    from collabsim.version import __version__

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

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "coalitions.result": ["SweepResult", "read_result"],
            "coalitions.sweep": ["asweep", "sweep"],
            "context": ["Recorder", "RunContext"],
            "episode": ["Call", "Episode", "Output", "Reply"],
            "foreign.graph_system": ["from_graph"],
            "foreign.seat_model": ["SeatModel"],
            "item": ["Item", "Score"],
            "models.chat.identified": ["identified"],
            "models.simulation.simulated": ["SimulatedModel"],
            "nodes.asking": ["ABSENT", "Ask", "AskRole", "ask"],
            "nodes.current_run": ["context_of"],
            "nodes.state": ["State", "last_replies", "slot"],
            "nodes.voting": ["plurality", "share"],
            "pool": ["Pool", "Seat"],
            "protocols": ["protocol"],
            "request": ["Message", "Request", "Sampling", "with_text"],
            "store": ["GenerationStore"],
            "system.system": ["System"],
            "tasks": ["Task", "load_task", "make_item", "score_answer"],
            "version": ["__version__"],
        },
    )
