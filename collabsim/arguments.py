"""Arguments of public functions, checked against the functions' own annotations.

In: a function with annotated parameters, and what a caller gave. Out: nothing, or a `ConfigError` that names the argument,
what was expected and what came, with the nearest name for an unknown one. Nothing is converted: what is accepted is passed
on as it came. Left out on purpose: annotations that exist for type checkers only (under `TYPE_CHECKING`); such parameters
are checked by whoever uses them.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache, wraps
from numbers import Number
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, ParamSpec, TypeAlias, TypeVar, Union, cast, get_args, get_origin

from collabsim.errors import ConfigError, nearest

P = ParamSpec("P")
R = TypeVar("R")

WORDS = {int: "a whole number", float: "a number", str: "text", bool: "True or False", Path: "a path", NoneType: "None"}
"""Names of types in messages; other types have their own names there."""


LISTS = (Sequence, Collection)
MAPPINGS = (Mapping, dict)


@dataclass(frozen=True, slots=True)
class AtLeast:
    """Mark in `Annotated[int, AtLeast(1)]`."""

    least: int


Count: TypeAlias = Annotated[int, AtLeast(1)]
"""A whole number of at least 1."""


def checked(**advice: str | None) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator: calls raise `ConfigError` for unknown, missing or ill-typed arguments.

    `advice`: parameter name to what to do about a wrong value of it; None for one that the function itself checks. A
    coroutine function is checked when it is awaited.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        if inspect.iscoroutinefunction(function):

            async def checking(*given: P.args, **settings: P.kwargs) -> Any:
                _check_call(function, given, settings, advice)
                return await cast(Any, function)(*given, **settings)

            return cast(Callable[P, R], wraps(function)(checking))

        @wraps(function)
        def call(*given: P.args, **settings: P.kwargs) -> R:
            _check_call(function, given, settings, advice)
            return function(*given, **settings)

        return call

    return decorate


def same_arguments(source: Callable[P, Any]) -> Callable[[Callable[..., R]], Callable[P, R]]:
    """Decorator: the function takes what `source` takes, to type checkers, editors and `help`; it hands all of it on."""

    def decorate(function: Callable[..., R]) -> Callable[P, R]:
        returns = inspect.signature(function).return_annotation
        cast(Any, function).__signature__ = inspect.signature(source).replace(return_annotation=returns)
        return function

    return decorate


def checked_names(record: type[R]) -> type[R]:
    """Decorator of a dataclass: its constructor raises `ConfigError` for unknown and missing arguments.

    The kinds are the class's own affair: it may convert some fields before it calls `check_fields`.
    """
    build = cast(Any, record).__init__
    signature = inspect.signature(build)
    known = [name for name in signature.parameters if name != "self"]

    @wraps(build)
    def checking(self: R, *given: Any, **settings: Any) -> None:
        check_names(settings, known)
        _bound(signature, known, (self, *given), settings)
        build(self, *given, **settings)

    cast(Any, record).__init__ = checking
    return record


def check_fields(record: Any) -> None:
    """Raises `ConfigError` for a field of a dataclass whose value is of another kind than its annotation says."""
    kinds = _field_kinds(record.__class__)
    for field in fields(record):
        check_kind(field.name, getattr(record, field.name), kinds[field.name])


def check_kind(name: str, value: Any, kind: Any, advice: str = "") -> None:
    """Raises `ConfigError` when `value` is not of the kind that the annotation `kind` describes."""
    if not fits(value, kind):
        close = nearest(value, _spelled(kind)) if isinstance(value, str) else ""
        expected = words(kind, isinstance(value, Mapping))
        what_to_do = f"; {advice}" if advice else ""
        raise ConfigError(f"{name}: expected {expected}, got {_misfit(value, kind)}{close}{what_to_do}")


def check_names(given: Sequence[str] | Mapping[str, Any], known: Sequence[str]) -> None:
    """Raises `ConfigError` for the first of `given` that is not one of `known`, with the nearest of these."""
    for name in given:
        if name not in known:
            raise ConfigError(f"unknown setting {name!r}{nearest(name, known)}; known: {', '.join(known)}")


def _check_call(
    function: Any, given: tuple[Any, ...], settings: Mapping[str, Any], advice: Mapping[str, str | None]
) -> None:
    signature, kinds, known = _signature(function)
    check_names(settings, known)
    for name, value in _bound(signature, known, given, settings).arguments.items():
        if name in kinds and (what_to_do := advice.get(name, "")) is not None:
            check_kind(name, value, kinds[name], what_to_do)


def _bound(
    signature: inspect.Signature, known: Sequence[str], given: tuple[Any, ...], settings: Mapping[str, Any]
) -> inspect.BoundArguments:
    """Arguments by parameter. Raises `ConfigError` for missing ones, and for too many."""
    try:
        return signature.bind(*given, **settings)
    except TypeError as error:
        raise ConfigError(f"{error}; expected {', '.join(known)}") from None


@lru_cache(maxsize=64)
def _signature(function: Any) -> tuple[inspect.Signature, dict[str, Any], list[str]]:
    """A function's signature, the kinds of its parameters that exist at run time, and the names it takes."""
    signature = inspect.signature(function)
    kinds: dict[str, Any] = {}
    known: list[str] = []
    for name, parameter in signature.parameters.items():
        kind = resolved(parameter.annotation, vars(sys.modules[function.__module__]))
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:  # `**settings: Unpack[SomeTypedDict]`
            known += getattr(next(iter(get_args(kind)), None), "__annotations__", ())
        elif name != "self":
            known.append(name)
            kinds[name] = kind
    return signature, kinds, known


@lru_cache(maxsize=64)
def _field_kinds(record: type) -> dict[str, Any]:
    """Annotations of a dataclass and its bases, each read in the module of its class."""
    classes = [one for one in reversed(record.__mro__) if "__annotations__" in vars(one)]
    return {
        name: resolved(kind, vars(sys.modules[one.__module__]))
        for one in classes
        for name, kind in vars(one)["__annotations__"].items()
    }


def resolved(annotation: Any, names: dict[str, Any]) -> Any:
    """An annotation as an object, read with the `names` of its module; `Any` when it names something that is there for
    type checkers only."""
    if annotation is inspect.Parameter.empty:
        return Any
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, names)  # the function's own source, as typing.get_type_hints reads it
    except (NameError, TypeError):  # TypeError: `alias | None` with an alias that is a text for type checkers
        return Any


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is of the kind that an annotation describes. A bool is no number, a text no sequence of others,
    and a number of numpy is none, for it has no place in a run's identity.

    What a container holds is looked at in sequences, collections and mappings only, and anything fits a kind that is not
    known here.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if origin in (Union, UnionType):
        return any(fits(value, one) for one in inner)
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in inner)
    if origin is Annotated:
        marks = [mark.least for mark in inner[1:] if isinstance(mark, AtLeast)]
        return fits(value, inner[0]) and all(value >= least for least in marks)
    if kind in (int, float):
        return isinstance(value, int if kind is int else int | float) and not isinstance(value, bool)
    if origin in LISTS:
        plain = isinstance(value, origin) and not isinstance(value, str | bytes)
        return plain and all(fits(one, inner[0]) for one in value)
    if origin in MAPPINGS:
        return isinstance(value, origin) and all(fits(k, inner[0]) and fits(v, inner[1]) for k, v in value.items())
    expected = NoneType if kind is None else origin or kind
    return not isinstance(expected, type) or isinstance(value, expected)


def _spelled(kind: Any) -> list[str]:
    """The texts that a kind lists one by one."""
    if get_origin(kind) is Literal:
        return [one for one in get_args(kind) if isinstance(one, str)]
    return [one for inner in get_args(kind) for one in _spelled(inner)]


def _misfit(value: Any, kind: Any) -> str:
    """A value as messages show it; of a container that should hold something else, the first entry that is wrong."""
    for one in (kind, *get_args(kind)):
        origin, inner, container = get_origin(one), get_args(one), f"a {type(value).__name__} with"
        if origin in LISTS and isinstance(value, list | tuple | set | frozenset):
            return f"{container} {next(shown(e) for e in value if not fits(e, inner[0]))}"
        if origin in MAPPINGS and isinstance(value, origin):
            key, held = next((k, v) for k, v in value.items() if not (fits(k, inner[0]) and fits(v, inner[1])))
            return f"{container} {shown(held)} for {key!r}" if fits(key, inner[0]) else f"{container} the key {key!r}"
    return shown(value)


def words(kind: Any, inside: bool = False) -> str:
    """A kind as messages name it; `inside`: a mapping with what it holds."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(words(one, inside) for one in inner))
    if origin is Literal:
        return " or ".join(map(repr, inner))
    if origin is Annotated:
        return words(inner[0]) + "".join(
            f" of at least {mark.least}" for mark in inner[1:] if isinstance(mark, AtLeast)
        )
    if origin in LISTS:
        return "a list of names" if inner[0] is str else f"a list with {words(inner[0])} in each place"
    if Mapping in (origin, kind) or dict in (origin, kind):
        return f"a mapping of names to {words(inner[1])}" if inside and inner and inner[1] is not Any else "a mapping"
    if origin is Callable:
        return "a function"
    name = WORDS.get(NoneType if kind is None else kind) or str(getattr(origin or kind, "__name__", kind))
    return name if name in WORDS.values() else _with_article(name)


def shown(value: Any) -> str:
    """A value as messages show it: plain ones as they are, others by their type."""
    if value is None or isinstance(value, str | Number):
        text = repr(value)
        return text if len(text) <= 60 else f"{text[:57]}..."
    return _with_article(type(value).__name__)


def _with_article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"
