"""What a schema expects at a place: types below a dotted key, as `--set` and error messages need them.

In: a schema and a key. Out: types, and names of known keys. `Any` stands where a key's owner (a model, a protocol, a
data set) says what it takes. Left out on purpose: checking values, which is pydantic's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import is_dataclass
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from collabsim.config.schema import ApplicationConfig, Config, ProtocolConfig
from collabsim.config.sections import installed_sections, section_schema
from collabsim.errors import CollabsimError


def choices(kind: Any) -> Iterator[Any]:
    """The types that a type is a choice of: `X` and `Y` of `X | Y | None`, `X` alone of `X`."""
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in (Union, UnionType):
        for choice in get_args(kind):
            yield from choices(choice)
    else:
        yield kind


def child(kind: Any, key: str, beside: Any = None) -> Any:
    """The type below `key` of a section, a mapping or a list; `beside` is the data there, which may decide it."""
    for choice in choices(kind):
        if _is_schema(choice):
            field = choice.model_fields.get(key)
            return field.annotation if field else _of_owner(choice, key, beside if isinstance(beside, Mapping) else {})
        if is_dataclass(choice):
            return get_type_hints(choice).get(key, Any)
        if get_args(choice) and get_origin(choice) is not Literal:
            return get_args(choice)[-1 if is_mapping(choice) else 0]
    return Any


def kind_at(schema: Any, location: Sequence[str]) -> Any:
    """The type at a place below a schema."""
    for key in location:
        schema = child(schema, key)
    return schema


def known_keys(kind: Any) -> list[str]:
    """Names of the keys of a section; empty for what takes any."""
    names: list[str] = []
    for choice in choices(kind):
        if _is_schema(choice):
            names += choice.model_fields
        elif is_dataclass(choice):
            names += get_type_hints(choice)
    return [*names, *installed_sections()] if kind is Config else names


def short_form(kind: Any) -> str | None:
    """The key that a text in the place of a section stands for: `name` of a protocol; None where there is none."""
    return next((name for choice in choices(kind) if (name := getattr(choice, "short_form", None))), None)


def is_mapping(kind: Any) -> bool:
    """Whether a type (no choice of several) is a mapping or a section."""
    origin = get_origin(kind) or kind
    return isinstance(origin, type) and (_is_schema(origin) or is_dataclass(origin) or issubclass(origin, Mapping))


def is_text(kind: Any) -> bool:
    """Whether a type (no choice of several) is text, or words to choose from."""
    words = get_origin(kind) is Literal and all(isinstance(word, str | None) for word in get_args(kind))
    return kind is str or words


def is_collection(kind: Any) -> bool:
    """Whether a type (no choice of several) holds other values."""
    origin = get_origin(kind) or kind
    return is_mapping(kind) or (isinstance(origin, type) and issubclass(origin, list | tuple | set | frozenset))


def _is_schema(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _of_owner(schema: type[BaseModel], key: str, beside: Mapping[str, Any]) -> Any:
    """The type of a key that a section leaves to another owner, as far as that is known without a run."""
    with suppress(CollabsimError):
        if schema is Config and key in installed_sections():
            return section_schema(key)
        if schema is ProtocolConfig and ("graph" in beside or key == "graph"):
            return child(ApplicationConfig, key)
        if schema is ProtocolConfig and isinstance(beside.get("name"), str):
            return _of_protocol(beside["name"], key)
    return Any


def _of_protocol(name: str, option: str) -> Any:
    from collabsim.protocols import as_protocol

    return get_type_hints(as_protocol(name).build, include_extras=True).get(option, Any)
