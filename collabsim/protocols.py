"""Protocols: functions that build a graph over seats, and the registry that finds them by name.

In: `build(seats, **options) -> StateGraph`, decorated or bare. Out: a `Protocol` that knows its options, checks them,
and builds. Names come from the entry-point group `collabsim.protocols`; `package.module:function` and functions
themselves work everywhere a name does. Left out on purpose: running a protocol; see `System`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_type_hints, overload

from collabsim import plugins
from collabsim.arguments import checked, resolved, shown
from collabsim.errors import ConfigError, PrerequisiteError, ProtocolError, nearest
from collabsim.recipes import registered_recipes

if TYPE_CHECKING:
    from langgraph.graph import StateGraph

Build: TypeAlias = "Callable[..., StateGraph[Any, Any, Any, Any]]"
GROUP = "collabsim.protocols"
NEEDS = frozenset({"dev", "logprobs", "logits", "weights", "same_tokenizer", "same_architecture"})


@dataclass(frozen=True)
class Protocol:
    """A registered way of working together."""

    build: Build
    """`build(seats, **options) -> StateGraph`."""
    name: str
    family: str = "custom"
    players: tuple[int, int | None] = (1, None)
    """Fewest and most seats; None means no upper limit."""
    roles: tuple[str, ...] = ()
    """Jobs that a seat or a helper holds."""
    needs: frozenset[str] = frozenset()
    absent: str = "an absent seat says nothing"
    """Meaning of abstaining here, in one sentence."""
    calls: Callable[..., int] | None = None
    """(number of present seats, **options) -> upper bound of the calls of one run; None: counted from the graph."""
    fit: Callable[..., Any] | None = field(default=None, compare=False)
    """`fit(system, dev_items, seed) -> JSON`, run once on the full pool before a sweep; may be async, and may take a keyword
    `concurrency`."""
    empty: Literal["floor", "base"] = "floor"
    """Outcome of the empty coalition: the task's floor, or that of the base's answer (a helper)."""
    per_coalition: bool = False
    """Whether a run holds something large that is made for its coalition (merged weights): a sweep then goes coalition by
    coalition."""
    fit_calls: Callable[..., int] | None = field(default=None, compare=False)
    """(number of seats, **options) -> upper bound of the calls of `fit` for one dev item, own answers not counted."""

    def __call__(self, seats: Sequence[str], **options: Any) -> StateGraph[Any, Any, Any, Any]:
        """The protocol's graph over these seats, like calling the function that was decorated."""
        return self.build(seats, **options)

    @property
    def doc(self) -> str:
        """First paragraph of the build function's docstring."""
        return (inspect.getdoc(self.build) or "").partition("\n\n")[0].replace("\n", " ")

    def options(self) -> dict[str, inspect.Parameter]:
        """The keyword parameters of `build`: the protocol's options with types and defaults."""
        parameters = list(inspect.signature(self.build).parameters.values())
        return {parameter.name: parameter for parameter in parameters[1:]}

    def option_kinds(self) -> dict[str, Any]:
        """What each option takes, by its annotation; `Any` where this is missing or names something that is there for
        type checkers only."""
        try:
            hints = get_type_hints(self.build, include_extras=True)
        except (NameError, TypeError):
            names = getattr(inspect.unwrap(self.build), "__globals__", {})
            hints = {name: resolved(parameter.annotation, names) for name, parameter in self.options().items()}
        return {name: hints.get(name, Any) for name in self.options()}

    def check_options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """All options with defaults filled in. Raises `ConfigError` for unknown, missing or ill-typed ones."""
        declared = self.options()
        for name in options:
            if name not in declared:
                raise ConfigError(
                    f"protocol {self.name!r} has no option {name!r}{nearest(name, declared)}; it has {sorted(declared)}"
                )
        checked = {}
        for name, parameter in declared.items():
            if name in options:
                checked[name] = self._check_option(name, options[name])
            elif parameter.default is not inspect.Parameter.empty:
                checked[name] = parameter.default
            else:
                raise ConfigError(f"protocol {self.name!r} needs the option {name!r}; add it under 'protocol:'")
        return checked

    def _check_option(self, name: str, value: Any) -> Any:
        from pydantic import TypeAdapter, ValidationError

        try:
            return TypeAdapter(self.option_kinds()[name]).validate_python(value)
        except ValidationError as error:
            problem = error.errors()[0]["msg"]
            raise ConfigError(f"protocol {self.name!r}, option {name!r}: {problem}, got {value!r}") from None

    def check_pool(self, size: int) -> None:
        """Raises `ProtocolError` when the protocol does not take this many seats."""
        fewest, most = self.players
        if size < fewest or (most is not None and size > most):
            expected = f"exactly {fewest}" if fewest == most else f"{fewest} to {most or 'any number of'}"
            raise ProtocolError(f"protocol {self.name!r} takes {expected} seats, got {size}; change the pool")


@overload
def protocol(build: Build, /) -> Protocol: ...


@overload
def protocol(
    *,
    name: str | None = None,
    family: str = "custom",
    players: tuple[int, int | None] = (1, None),
    roles: Sequence[str] = (),
    needs: Sequence[str] = (),
    absent: str = "an absent seat says nothing",
    calls: Callable[..., int] | None = None,
    fit: Callable[..., Any] | None = None,
    empty: Literal["floor", "base"] = "floor",
    per_coalition: bool = False,
    fit_calls: Callable[..., int] | None = None,
) -> Callable[[Build], Protocol]: ...


@checked()
def protocol(
    build: Build | None = None,
    /,
    *,
    name: str | None = None,
    family: str = "custom",
    players: tuple[int, int | None] = (1, None),
    roles: Sequence[str] = (),
    needs: Sequence[str] = (),
    absent: str = "an absent seat says nothing",
    calls: Callable[..., int] | None = None,
    fit: Callable[..., Any] | None = None,
    empty: Literal["floor", "base"] = "floor",
    per_coalition: bool = False,
    fit_calls: Callable[..., int] | None = None,
) -> Protocol | Callable[[Build], Protocol]:
    """Decorator that makes a `Protocol` of a build function; all arguments have sensible defaults.

    `fit(system, dev_items, seed) -> JSON` learns from dev items before a sweep; it may be async. If it makes many runs or
    calls, let it take the keyword `concurrency` (`fit(system, dev_items, seed, *, concurrency=100)`): the number of runs that
    the user allows at a time is passed in, and `run_all`, `call_all` (`collabsim.system.execute`) and `dev_outcomes`
    (`collabsim.system.fitting`) take it. The other arguments are described at the fields of `Protocol`.

    Raises `ConfigError` for wrong arguments, and `ProtocolError` when `needs` holds a word that is not in `NEEDS`.
    """
    if build is not None and not callable(build):
        raise ConfigError(f"protocol: expected a build function, got {shown(build)}; give a name as `name=`")
    unknown = set(needs) - NEEDS
    if unknown:
        raise ProtocolError(f"unknown needs {sorted(unknown)}; known are {sorted(NEEDS)}")

    def register(function: Build) -> Protocol:
        return Protocol(
            build=function,
            name=name or function.__name__,
            family=family,
            players=players,
            roles=tuple(roles),
            needs=frozenset(needs),
            absent=absent,
            calls=calls,
            fit=fit,
            empty=empty,
            per_coalition=per_coalition,
            fit_calls=fit_calls,
        )

    return register if build is None else register(build)


def as_protocol(value: str | Protocol | Build) -> Protocol:
    """A protocol by registered name, by `package.module:function`, from a bare build function, or as it is.

    Raises `ConfigError` for an unknown name, naming the nearest.
    """
    if isinstance(value, Protocol):
        return value
    if callable(value):
        return Protocol(build=value, name=getattr(value, "__name__", "protocol"))
    if not isinstance(value, str):
        raise ConfigError(
            f"protocol: expected a name, `package.module:function` or a build function, got {value!r}; "
            "`collabsim protocols` lists the names"
        )
    entry_point = registered().get(value)
    if entry_point is None and ":" in value:
        entry_point = EntryPoint(name=value, group=GROUP, value=value)
    if value in registered_recipes() and entry_point is None:
        raise ConfigError(
            f"{value!r} is a recipe that makes a pool, no protocol that runs over one: see `collabsim protocols {value}` for "
            "its command, and sweep the config that it writes"
        )
    if entry_point is None:
        raise ConfigError(f"unknown protocol {value!r}{nearest(value, registered())}; known are {sorted(registered())}")
    try:
        return as_protocol(plugins.load(entry_point, "protocol"))
    except PrerequisiteError as error:
        raise ConfigError(str(error)) from error


def registered() -> dict[str, EntryPoint]:
    """Entry points of all installed packages that offer protocols, by name."""
    return plugins.registered(GROUP)
