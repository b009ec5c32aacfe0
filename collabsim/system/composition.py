"""The parts of a system: protocol, options, pool, helpers, roles, and the results of fitting on dev.

In: these parts, by name or as objects. Out: a checked, frozen `Composition` with its compiled graph, its identity and what
follows from them. The graph is compiled once per (protocol, seats, options) and shared by every composition that has these
three. Left out on purpose: running it; see `running.py` and `system.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self

from collabsim.arguments import check_fields
from collabsim.context import Limits
from collabsim.errors import ConfigError, ProtocolError, nearest
from collabsim.pool import Pool, as_pool
from collabsim.protocols import Protocol, as_protocol
from collabsim.roles import Rank, as_names, dev_ranks
from collabsim.seeds import canonical_json, digest
from collabsim.store import GenerationStore
from collabsim.system.fitted import Fitted

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langgraph.graph.state import CompiledStateGraph

_compiled: dict[tuple[Any, tuple[str, ...], str], CompiledStateGraph[Any, Any, Any, Any]] = {}


@dataclass(frozen=True, eq=False)
class Composition:
    """protocol + options + pool (+ helpers, roles, what was fitted on dev)."""

    protocol: Protocol
    pool: Pool
    options: Mapping[str, Any] = field(default_factory=dict)
    helpers: Pool = field(default_factory=Pool)
    """Models outside the game, the same for every coalition."""
    roles: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    """Role to a helper, a seat, or seats by preference; others go to the best present seat by dev score."""
    order: Sequence[str] | None = None
    """Fixed order in which members are shown; None: by H(run seed, item, seat)."""
    alone: Literal["answers", "floor"] = "answers"
    """Outcome of a single present seat: that of its own answer, or the floor."""
    absent: str = "remove"
    """`remove`, or `replace:HELPER`: an absent seat is filled by that helper's model (value over replacement)."""
    fitted: Fitted = field(default_factory=Fitted)
    store: GenerationStore = field(default_factory=lambda: GenerationStore(None))
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "protocol", as_protocol(self.protocol))
        set_field(self, "pool", as_pool(self.pool))
        set_field(self, "helpers", as_pool(self.helpers))
        check_fields(self)
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
        if self.absent != "remove" and self.replacement is None:
            raise ConfigError(
                f"absent: expected 'remove' or 'replace:HELPER' with one of the helpers {list(self.helpers)}, "
                f"got {self.absent!r}"
            )

    def check_fitted(self) -> None:
        """Raises `ConfigError` when the protocol runs on what was fitted on dev items, and nothing was."""
        if "dev" in self.protocol.needs and not (self.fitted.inputs or self.fitted.data):
            raise ConfigError(
                f"protocol {self.protocol.name!r} runs on what was fitted on dev items, and this system is not fitted; "
                "`sweep` fits by itself, or use dataclasses.replace(system, fitted=await afit(system, dev_items))"
            )

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
        from collabsim.system.topology import step_limit

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

    def replace(self, seat: str, model: Any) -> Self:
        """The same system with `model` in `seat`, or in the helper of that name; nothing is rebuilt."""
        if seat in self.helpers:
            return replace(self, helpers=self.helpers.replace(seat, model))
        return replace(self, pool=self.pool.replace(seat, model))

    @cached_property
    def everyone(self) -> frozenset[str]:
        """Names of all seats."""
        return frozenset(self.pool)

    @cached_property
    def twins(self) -> tuple[tuple[str, str], ...]:
        """Each seat with the first of the seats with the same identity."""
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
