"""A system: a protocol over a pool, ready to be run on items under any coalition.

In: protocol, options, pool, helpers, roles, what was fitted on dev. Out: one `Episode` per (item, coalition, seed).
The graph is compiled once per (protocol, seats, options) and shared by every system that has these three; what differs
between runs travels in the run context. Sweeps, values and files are `coalitions`' business.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from collabsim import running
from collabsim.context import Limits, Recorder
from collabsim.episode import Episode
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
        run = running.context(self, item, present, run_seed, replica, recorder or Recorder(), replicas)
        return await running.episode(item, present, run, lambda: running.through_graph(self, run))

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

    def _present(self, coalition: Collection[str] | None) -> frozenset[str]:
        if coalition is None:
            return self.everyone
        present = frozenset(coalition)
        if not present <= self.everyone:
            for seat in present:
                self.pool.check(seat)
        return present

    @cached_property
    def everyone(self) -> frozenset[str]:
        """Names of all seats."""
        return frozenset(self.pool)

    @cached_property
    def twins(self) -> tuple[tuple[str, str], ...]:
        """Each seat with the first of the seats that speak exactly alike."""
        first: dict[str, str] = {}
        for name in sorted(self.pool):
            first.setdefault(self.pool[name].identity, name)
        return tuple((name, first[seat.identity]) for name, seat in self.pool.items())

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
