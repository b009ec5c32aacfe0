"""A system: a protocol over a pool, ready to be run on items under any coalition.

In: protocol, options, pool, helpers, roles, what was fitted on dev. Out: one `Episode` per (item, coalition, seed).
The graph is compiled once per (protocol, seats, options) and shared by every system that has these three; what differs
between runs travels in the run context. Sweeps, values and files are `coalitions`' business.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from collabsim import running
from collabsim.context import Limits, Recorder, RunContext
from collabsim.episode import Episode, Final
from collabsim.errors import ConfigError, ProtocolError
from collabsim.fitting import Fitted, check_fitted
from collabsim.loop import run_sync
from collabsim.pool import Pool, nearest
from collabsim.protocols import Protocol, as_protocol
from collabsim.roles import Rank, as_names, dev_ranks
from collabsim.seeds import canonical_json, digest
from collabsim.store import GenerationStore
from collabsim.tasks.item import Item

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langgraph.graph.state import CompiledStateGraph

    from collabsim.foreign.graph_system import GraphSystem

_compiled: dict[tuple[Any, tuple[str, ...], str], CompiledStateGraph[Any, Any, Any, Any]] = {}


@dataclass(frozen=True, eq=False)
class System:
    """protocol + options + pool (+ helpers, roles, what was fitted on dev)."""

    protocol: Protocol
    """Also taken: a registered name, `package.module:function`, or a bare build function."""
    pool: Pool
    """Also taken: a mapping of seat name to chat model."""
    options: Mapping[str, Any] = field(default_factory=dict)
    helpers: Pool = field(default_factory=Pool)
    """Models outside the game, the same for every coalition."""
    roles: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    """Role to a helper, a seat, or seats by preference; others go to the best present seat by dev score."""
    order: Sequence[str] | None = None
    """Fixed order in which members are shown; None: by H(run seed, item, seat)."""
    alone: Literal["answers", "floor"] = "answers"
    """What a single present seat is worth: its own answer, or the floor."""
    absent: str = "remove"
    """`remove`, or `replace:HELPER`: an absent seat is filled by that helper's model (value over replacement)."""
    fitted: Fitted = field(default_factory=Fitted)
    store: GenerationStore = field(default_factory=lambda: GenerationStore(None))
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "protocol", as_protocol(self.protocol))
        set_field(self, "pool", self.pool if isinstance(self.pool, Pool) else Pool(self.pool))
        set_field(self, "helpers", self.helpers if isinstance(self.helpers, Pool) else Pool(self.helpers))
        set_field(self, "options", self.protocol.check_options(self.options))
        self.protocol.check_pool(len(self.pool))
        self._check_names()

    def _check_names(self) -> None:
        both = set(self.pool) & set(self.helpers)
        if both:
            raise ConfigError(
                f"{sorted(both)} are both seats and helpers; a helper is never a player, rename one of them"
            )
        for role, holders in self.roles.items():
            if role not in self.protocol.roles:
                raise ConfigError(
                    f"protocol {self.protocol.name!r} has no role {role!r}{nearest(role, self.protocol.roles)}; "
                    f"it has {list(self.protocol.roles)}"
                )
            for holder in as_names(holders):
                if holder not in self.helpers:
                    self.pool.check(holder)
        for seat in self.order or ():
            self.pool.check(seat)
        if self.order is not None and sorted(self.order) != sorted(self.pool):
            raise ConfigError(f"order {list(self.order)} must name every seat once; the pool has {list(self.pool)}")
        if self.alone not in ("answers", "floor"):
            raise ConfigError(f"alone: expected 'answers' or 'floor', got {self.alone!r}")
        if self.absent != "remove" and self.replacement is None:
            raise ConfigError(
                f"absent: expected 'remove' or 'replace:HELPER' with one of the helpers {list(self.helpers)}, "
                f"got {self.absent!r}"
            )

    @staticmethod
    def from_graph(
        app: Any,
        pool: Pool | Mapping[str, Any] | None = None,
        *,
        players: Sequence[str] | None = None,
        output: Callable[[Any], Any] | None = None,
        **settings: Any,
    ) -> GraphSystem:
        """A system whose players are nodes (or seats) of an existing LangGraph application.

        `app`: a `StateGraph` or a compiled one; it stays as it is. `pool`: models for its `SeatModel`s.
        `players`: names of nodes (`team/researcher` inside a graph that is a node) and seats; None: every node.
        `output`: final state -> text, or ((text, weight), ...); None: the last AI message.
        Settings: `input` (item's view -> first state; default its messages), `absent` (node -> `skip`, `pass`,
        `goto:NODE`, an update, a `Command` or a function in its place; seat -> what is said in its place), `name`,
        `revision` (your word for the application's version), `recursion_limit`, `on_limit` (`no_answer`, `fail`),
        `context` and `config` (LangGraph's, the same for every run), `memory` (True: its checkpointer and store are
        used, with a thread for each run), `helpers`, `store`, `limits`.

        Raises `ConfigError` for unknown names, and where an absent node would leave the run without a way on.
        """
        from collabsim.foreign.graph_system import graph_system

        return graph_system(app, pool, players=players, output=output, **settings)

    # ---- what the system is -------------------------------------------------------------------------------------

    @property
    def graph(self) -> CompiledStateGraph[Any, Any, Any, Any]:
        """The compiled graph, shared by all systems with the same protocol, seats and options."""
        key = (self.protocol.build, self.pool.seats, canonical_json(_plain(self.options)))
        if key not in _compiled:
            _compiled[key] = self._build().compile()
        return _compiled[key]

    def _build(self) -> Any:
        from langgraph.graph import StateGraph

        builder = self.protocol.build(self.pool.seats, **self.options)
        if not isinstance(builder, StateGraph):
            raise ProtocolError(
                f"protocol {self.protocol.name!r}: build must return an uncompiled StateGraph, "
                f"got {type(builder).__name__}"
            )
        if "final" not in builder.channels:
            raise ProtocolError(
                f"protocol {self.protocol.name!r}: its state has no key 'final'; "
                "use collabsim.State, and write the final output there as ((text, weight), ...)"
            )
        return builder

    @cached_property
    def step_limit(self) -> int:
        """Supersteps that a run may take, read off the graph."""
        from collabsim.topology import step_limit

        return step_limit(self.graph.builder)

    @cached_property
    def identity(self) -> str:
        """Content hash of everything that a run's outcome may depend on."""
        return digest(
            {
                "protocol": self.protocol.name,
                "options": _plain(self.options),
                "pool": {name: [seat.identity, seat.description] for name, seat in self.pool.items()},
                "helpers": {name: seat.identity for name, seat in self.helpers.items()},
                "roles": _plain(self.roles),
                "order": _plain(self.order),
                "alone": self.alone,
                "absent": self.absent,
                "fitted": _plain(self.fitted.data),
                "dev_scores": _plain(self.fitted.dev_scores),
            }
        )

    def replace(self, seat: str, model: Any) -> System:
        """The same system with `model` in `seat`, or in the helper of that name; nothing is rebuilt."""
        if seat in self.helpers:
            return replace(self, helpers=self.helpers.replace(seat, model))
        return replace(self, pool=self.pool.replace(seat, model))

    def study(self, items: Sequence[Item]) -> None:
        """Hand the answer key of `items` to every simulated model; real models have no `study`."""
        for seat in (*self.pool.values(), *self.helpers.values()):
            learn = getattr(seat.model, "study", None)
            if callable(learn):
                learn(items)

    # ---- runs ---------------------------------------------------------------------------------------------------

    def run(self, item: Item, coalition: Collection[str] | None = None, **how: Any) -> Episode:
        """`arun`, waiting for the result; works in scripts and notebooks."""
        return run_sync(self.arun(item, coalition, **how))

    async def arun(
        self,
        item: Item,
        coalition: Collection[str] | None = None,
        *,
        run_seed: int = 0,
        replica: int = 0,
        replicas: Mapping[str, int] | None = None,
        recorder: Recorder | None = None,
    ) -> Episode:
        """One run on `item` with the seats of `coalition` present (None: all).

        `replica` tells runs with other samples apart; `replicas` gives single seats or helpers another one.
        Model failures are returned as an episode without outcome. Raises `ConfigError` for an unknown seat, for a system
        that must be fitted on dev items first, and the errors that would meet every run alike (`running.ABORTS`).
        """
        check_fitted(self)
        present = self._present(coalition)
        if len(present) == 1 and self.alone == "floor" and self.replacement is None:
            return running.at_floor(item, present, run_seed, replica)
        run = self._context(item, present, run_seed, replica, recorder or Recorder(), replicas)
        return await running.episode(item, present, run, lambda: self._final(run))

    async def alone_on(
        self,
        item: Item,
        seat: str,
        *,
        run_seed: int = 0,
        replica: int = 0,
        replicas: Mapping[str, int] | None = None,
        recorder: Recorder | None = None,
    ) -> Episode:
        """The seat's own single answer to the item, outside the protocol: its individual strength on this item."""
        self.pool.check(seat)
        present = frozenset((seat,))
        run = running.context(self, item, present, run_seed, replica, recorder or Recorder(), replicas)
        return await running.episode(item, present, run, lambda: running.own_answer(run, seat))

    def _context(self, item: Item, present: frozenset[str], *how: Any) -> RunContext:
        return running.context(self, item, present, *how)

    async def _final(self, run: RunContext) -> Final:
        return await running.through_graph(self, run)

    def _present(self, coalition: Collection[str] | None) -> frozenset[str]:
        if coalition is None:
            return frozenset(self.players)
        present = frozenset(coalition)
        for name in present.difference(self.players):
            raise ConfigError(f"no seat {name!r}{nearest(name, self.players)}; the pool has {list(self.players)}")
        return present

    @property
    def players(self) -> tuple[str, ...]:
        """Names of what coalitions switch: the seats."""
        return self.pool.seats

    @property
    def own_answers(self) -> Mapping[str, tuple[str, ...]]:
        """Player to the seats whose own answers are its individual strength."""
        return {seat: (seat,) for seat in self.pool}

    def meanings(self) -> dict[str, Any]:
        """What the numbers of a sweep mean, for reports."""
        return {
            "floor": "v(empty): outcome of a run in which nobody is present",
            "alone": self.alone,
            "absent": self.absent,
            "abstaining": self.protocol.absent,
        }

    @cached_property
    def everyone(self) -> frozenset[str]:
        """Names of all seats."""
        return frozenset(self.pool)

    @cached_property
    def twins(self) -> tuple[tuple[str, str], ...]:
        """Each seat with the first of the seats that speak exactly alike."""
        return self.pool.twins()

    @cached_property
    def ranks(self) -> dict[str, Rank]:
        """Seat to its rank by dev score; empty without dev scores."""
        return dev_ranks(self.pool, self.fitted.dev_scores)

    @cached_property
    def replacement(self) -> BaseChatModel | None:
        """The model that fills absent seats, when `absent` says `replace:HELPER`."""
        kind, _, name = self.absent.partition(":")
        return self.helpers[name].model if kind == "replace" and name in self.helpers else None

    def filled(self, present: frozenset[str]) -> Pool:
        """The pool with `replacement` in every seat that is not present."""
        pool = self.pool
        if self.replacement is not None:
            for seat in self.everyone - present:
                pool = pool.replace(seat, self.replacement)
        return pool


def _plain(value: Any) -> Any:
    """`value` with mappings and sequences as JSON ones."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(entry) for entry in value]
    return value if isinstance(value, str | int | float | bool | None) else repr(value)
