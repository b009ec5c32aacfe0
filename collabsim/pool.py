"""The pool: seats, and the model that fills each.

In: chat models (or ready `Seat`s) by seat name. Out: an immutable ordered mapping that a run context carries; swapping
a model is `pool.replace(seat, model)`, which makes a new pool and touches no graph. Left out on purpose: loading models
from specs; see `models.resolve`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from collabsim.arguments import check_kind, checked_names, shown
from collabsim.errors import ConfigError, nearest
from collabsim.identity import identity_of
from collabsim.request import Message, Messages, Sampling
from collabsim.seeds import digest

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from collabsim.episode import Reply
    from collabsim.request import Request

    class RequestModel(Protocol):
        """A model that takes typed requests and needs no LangChain, such as what `identified` gives."""

        async def areply(self, request: Request, /) -> Reply:
            """One reply. Raises `CallError` when the call fails."""

    Member: TypeAlias = "BaseChatModel | RequestModel | Seat"
    """A member of a pool: a chat model, or one with its sampling, system prompt and examples."""
    Members: TypeAlias = "Pool | Mapping[str, Member]"
    """A pool, or what makes one."""

SEAT_NAME = re.compile(r"(?!__)[A-Za-z0-9_.-]+")


@checked_names
@dataclass(frozen=True, slots=True, eq=False)
class Seat:
    """A named place in a graph, with the model that fills it and how that model is spoken to."""

    name: str
    model: BaseChatModel
    sampling: Sampling = field(default_factory=Sampling)
    system: str | None = None
    """System prompt, put before everything that this seat is asked."""
    examples: tuple[tuple[str, str], ...] = ()
    """Few-shot (question, answer) pairs, put after the system prompt."""
    description: str = ""
    """Description of this seat for a router."""
    persona: Messages = field(init=False, repr=False)
    """`system` and `examples` as messages: the head of every prompt of this seat."""
    identity: str = field(init=False, repr=False)
    """Equal for seats with the same model, persona and sampling."""

    if TYPE_CHECKING:  # the generated one knows only what `model` is read as

        def __init__(
            self,
            name: str,
            model: BaseChatModel | RequestModel,
            sampling: Sampling = ...,
            system: str | None = ...,
            examples: tuple[tuple[str, str], ...] = ...,
            description: str = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not SEAT_NAME.fullmatch(self.name):
            raise ConfigError(
                f"seat name {self.name!r}: expected letters, digits, '_', '.', '-' and no leading '__'; rename the seat"
            )
        for name, kind in {"sampling": Sampling, "system": str | None, "description": str}.items():
            check_kind(name, getattr(self, name), kind)
        persona = [Message("system", self.system)] if self.system else []
        for question, answer in self.examples:
            persona += [Message("user", question), Message("assistant", answer)]
        object.__setattr__(self, "persona", tuple(persona))
        object.__setattr__(
            self, "identity", digest([model_identity(self.model), list(self.persona), self.sampling.as_json()])
        )


def model_identity(model: BaseChatModel) -> str:
    """The model's declared identity, or one that holds for this object in this process only."""
    return identity_of(model) or f"object:{id(model):x}"


class Pool(Mapping[str, Seat]):
    """Immutable ordered mapping of seat name to `Seat`."""

    __slots__ = ("_seats",)

    def __init__(self, seats: Mapping[str, Member] | None = None, /, **more: Member) -> None:
        """`Pool({"a": model}, b=Seat(...))`: values are chat models or seats.

        Raises `ConfigError` for what is no mapping, for illegal names, and for values that are no models.
        """
        if not isinstance(seats, Mapping | None):
            raise ConfigError(
                f"pool: expected a mapping of seat name to chat model, got {shown(seats)}; "
                'write Pool({"a": model, "b": model}) or Pool(a=model, b=model)'
            )
        self._seats = {name: _as_seat(name, value) for name, value in {**(seats or {}), **more}.items()}

    def __getitem__(self, name: str) -> Seat:
        return self._seats[name]

    def __contains__(self, name: object) -> bool:
        return name in self._seats

    def __iter__(self) -> Iterator[str]:
        return iter(self._seats)

    def __len__(self) -> int:
        return len(self._seats)

    def __repr__(self) -> str:
        return f"Pool({', '.join(self._seats)})"

    @property
    def seats(self) -> tuple[str, ...]:
        """Names of all seats, in order."""
        return tuple(self._seats)

    def replace(self, seat: str, model: BaseChatModel) -> Pool:
        """A new pool in which `model` fills `seat`; sampling, system prompt and examples of the seat stay."""
        self.check(seat)
        return Pool({**self._seats, seat: replace(self._seats[seat], model=model)})

    def only(self, *seats: str) -> Pool:
        """A new pool of these seats, in the order of this one."""
        for seat in seats:
            self.check(seat)
        return Pool({name: value for name, value in self._seats.items() if name in seats})

    def twins(self) -> tuple[tuple[str, str], ...]:
        """Each seat with the first, by name, of the seats with the same identity."""
        first: dict[str, str] = {}
        for name in sorted(self):
            first.setdefault(self[name].identity, name)
        return tuple((name, first[seat.identity]) for name, seat in self.items())

    def check(self, seat: str) -> None:
        """Raises `ConfigError`, naming the nearest seat, when there is no such seat."""
        if seat not in self._seats:
            raise ConfigError(f"no seat {seat!r}{nearest(seat, self._seats)}; the pool has {list(self._seats)}")

    def same_model(self) -> dict[str, list[str]]:
        """Seats by model: one entry per distinct model, named after its first seat."""
        groups: dict[str, list[str]] = {}
        for name, seat in self._seats.items():
            groups.setdefault(model_identity(seat.model), []).append(name)
        return {names[0]: names for names in groups.values()}


def as_pool(members: Members) -> Pool:
    """A pool as it is, or one of a mapping. Raises `ConfigError` as `Pool` does."""
    return members if isinstance(members, Pool) else Pool(members)


def _as_seat(name: str, value: Any) -> Seat:
    if isinstance(value, Seat):
        return value if value.name == name else replace(value, name=name)
    if isinstance(value, type) or not hasattr(value, "ainvoke"):
        came = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
        raise ConfigError(f"seat {name!r}: expected a LangChain chat model or a collabsim.Seat, got {came}")
    return Seat(name, value)
