"""`--set a.b=value`: one key of a config, read as the same key in the file is read.

In: plain data, an override, and the schema of the data. Out: the data, changed. What the schema expects at the key
decides how the value is read: text is taken as it is written (quotes around all of it and spaces at its ends left out),
everything else is YAML, and a mapping in the place of a text needs its braces. Left out on purpose: whether the value
is possible.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from collabsim.config.expected import child, choices, is_collection, is_mapping, is_text, short_form
from collabsim.config.schema import Config
from collabsim.config.yaml_text import load_yaml, yaml_problem
from collabsim.errors import ConfigError

NOTHING = ("", "~", "null", "Null", "NULL")
"""How YAML writes that there is no value."""


def as_overrides(flags: Mapping[str, str | int | None]) -> list[str]:
    """Flags as `--set` arguments, key to value, those that were not given left out.

    Text goes in quotes, so that `--out 2024` is a folder and no number.
    """
    return [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in flags.items() if value is not None]


def apply_override(
    data: dict[str, Any],
    override: str,
    schema: Any = Config,
    example: str = "a.b=value, for example sweep.method=exact",
) -> None:
    """Change one key of `data` in place; sections on the way to it are made, or written out from their short form.

    Raises `ConfigError` for an override without a key or a value (which `example` shows), for a key below something
    that is no section, and for a value that is no YAML where a list or a mapping is expected.
    """
    key, separator, text = override.partition("=")
    if not separator or not key.strip():
        raise ConfigError(f"--set {override!r}: expected {example}")
    place, rest, kind = data, key.strip().split("."), schema
    while (step := _next_key(place, rest)) != (last := ".".join(rest)):
        kind = child(kind, step, place)
        place[step] = _as_section(place.get(step), kind, f"--set {override!r}: {step!r} is not a section")
        place, rest = place[step], rest[step.count(".") + 1 :]
    place[last] = _read(text.strip(), child(kind, last, place), f"--set {override!r}")


def _next_key(place: Mapping[str, Any], rest: Sequence[str]) -> str:
    """The longest key of `place` that the rest of a dotted key begins with (seats may be called `gpt-4.1`), or a new one."""
    known = (".".join(rest[:length]) for length in range(len(rest), 0, -1))
    return next((key for key in known if key in place), rest[0])


def _as_section(value: Any, kind: Any, refusal: str) -> dict[str, Any]:
    """A section of its own: other seats may share the same one by YAML's `*alias` and `<<`."""
    if value is None:
        return {}
    if isinstance(value, str) and (name := short_form(kind)):
        return {name: value}
    if not isinstance(value, dict):
        raise ConfigError(refusal)
    return dict(value)


def _read(text: str, kind: Any, where: str) -> Any:
    """The value that a text is where `kind` is expected."""
    kinds = list(choices(kind))
    if any(map(is_text, kinds)) and not _is_collection_of(text, kinds):
        return None if type(None) in kinds and text in NOTHING else _unquoted(text)
    try:
        value = load_yaml(text)
    except yaml.constructor.ConstructorError as error:
        raise ConfigError(f"{where}: {error.problem}; give each key once, and put text in quotes") from None
    except yaml.YAMLError as error:
        if text[:1] in ("{", "[") and any(map(is_collection, kinds)):
            raise ConfigError(f"{where}: not valid YAML: {yaml_problem(error)}; put text in quotes") from None
        return text
    may_be_text = short_form(kind) is not None or not any(map(is_mapping, kinds))
    return text if isinstance(value, dict) and may_be_text and text[:1] != "{" and "\n" not in text else value


def _is_collection_of(text: str, kinds: Sequence[Any]) -> bool:
    """Whether a text is meant as the list or mapping that may stand in the place of a text."""
    return text[:1] in ("{", "[") and any(map(is_collection, kinds))


def _unquoted(text: str) -> str:
    """Text without the quotes around all of it."""
    if text[:1] not in ("'", '"'):
        return text
    try:
        value = load_yaml(text)
    except yaml.YAMLError:
        return text
    return value if isinstance(value, str) else text
