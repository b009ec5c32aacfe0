"""The run context: everything that differs between two runs of one compiled graph.

In: a system, an item, a coalition, a seed. Out: one frozen `RunContext` per run, which nodes read and never change.
Toggling a seat and swapping a model are a change of this object, never a rebuild of the graph.

Left out on purpose: how a node gets its run; see `nodes.current_run`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, Protocol

from collabsim.errors import ProtocolError
from collabsim.item import Answers, ItemView
from collabsim.pool import Pool, Seat
from collabsim.seeds import derive_seed

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from collabsim.episode import Call, Reply
    from collabsim.request import Request


class Generations(Protocol):
    """The source of a run's replies; `store.GenerationStore` is one."""

    async def fetch(self, model: BaseChatModel, request: Request) -> tuple[Reply, str, bool]:
        """The reply to a request, its key in the store, and whether it was there already.

        Raises `CallError` when the call fails.
        """


@dataclass(frozen=True, slots=True)
class Limits:
    """The behaviour of a run that reaches a limit."""

    on_overflow: Literal["fail", "no_answer"] = "fail"
    """A prompt that does not fit its window fails the run, or counts as a reply without an answer."""


@dataclass(slots=True)
class Recorder:
    """Collects the calls of one run. The only mutable thing in a run context."""

    calls: list[Call] = field(default_factory=list)
    abstained: set[str] = field(default_factory=set)
    """Nodes of a foreign graph that abstained."""
    _draws: dict[str, Iterator[int]] = field(default_factory=dict)

    def occurrence(self, content: str) -> int:
        """Number of earlier calls of this content in this run: the draw of a call that names none."""
        return next(self._draws.setdefault(content, count()))

    def record(self, call: Call, request: Request, reply: Reply) -> None:  # noqa: ARG002 (see PromptRecorder)
        """Keep one call; subclasses may also read its request and its reply."""
        self.calls.append(call)


@dataclass(frozen=True, slots=True, eq=False)
class RunContext:
    """One run, seen from inside a graph. Always truthy: LangGraph replaces a falsy context by its parent's."""

    run_seed: int
    item: ItemView
    present: frozenset[str]
    """Seats that are on."""
    order: tuple[str, ...]
    """Present seats in the order in which they are shown or asked; no seat gains from its place."""
    preference: tuple[str, ...]
    """Present seats, best first by dev score (one model, one rank); without dev scores equal to `order`."""
    pool: Pool
    helpers: Pool
    roles: Mapping[str, str]
    """Role to the seat or helper that holds it in this run; a role that nobody can hold is missing."""
    answers: Answers
    store: Generations
    recorder: Recorder
    fitted: Mapping[str, Any] = field(default_factory=dict)
    """The result of the protocol's `fit` on dev items; empty without one."""
    limits: Limits = Limits()
    replica: int = 0
    """Number of this run among several of one item; calls of different replicas are different samples."""
    replicas: Mapping[str, int] = field(default_factory=dict)
    """Seats and helpers with a replica of their own: in training the learner's samples vary against given partners."""
    off: frozenset[str] = frozenset()
    """Nodes of a foreign graph that are off."""
    stand_ins: Mapping[str, Any] = field(default_factory=dict)
    """Seat of a foreign graph to its reply when it is off: a text, a message, or a function of the messages."""

    def speaker(self, name: str) -> Seat | None:
        """The present seat or the helper of this name; None for a seat that is off.

        Raises `ProtocolError` for a name that is neither.
        """
        if name in self.present:
            return self.pool[name]
        if name in self.helpers:
            return self.helpers[name]
        if name in self.pool:
            return None
        raise ProtocolError(
            f"a node asked {name!r}, which is neither a seat {list(self.pool)} nor a helper {list(self.helpers)}"
        )

    @property
    def alone(self) -> bool:
        """Whether a single seat is present: it then answers by itself, whatever the protocol."""
        return len(self.present) == 1


@lru_cache(maxsize=1 << 14)
def item_order(run_seed: int, item_id: str, twins: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """The seats sorted by H(run seed, item, seat): a fresh, content-made order for every item.

    `twins` pairs each seat with the first of the seats with the same identity (itself, as a rule). Twins are neighbours in
    the order, so that a coalition with one of them and the same coalition with the other are shown alike.
    """

    def place(pair: tuple[str, str]) -> tuple[int, int, str]:
        seat, first = pair
        return derive_seed("order", run_seed, item_id, first), derive_seed("order", run_seed, item_id, seat), seat

    return tuple(seat for seat, _ in sorted(twins, key=place))
