"""YAML as configs use it: no key twice, and keys that YAML does not read as text are still known as they were written.

In: a file or a text. Out: plain data, in which a key such as `1:` or `yes:` is an `OddKey`. Left out on purpose: what
the keys mean, and which values they take.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from collabsim.errors import ConfigError

MERGE = "tag:yaml.org,2002:merge"
"""The key `<<`, which takes over what it does not find beside it."""


class OddKey(NamedTuple):
    """A key that YAML reads as a number, a truth value, a date or nothing."""

    value: Any
    written: str


def load_yaml(text: str) -> Any:
    """The data that a text is. Raises `yaml.YAMLError`: also for an impossible date or number, and a key written
    twice."""
    try:
        return yaml.load(text, _ConfigLoader)
    except RecursionError:
        raise yaml.YAMLError("nested too deeply") from None


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a file. Raises `ConfigError` that says what is wrong and where."""
    try:
        data = load_yaml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"no config file {str(path)!r}; give the path of a YAML file") from None
    except IsADirectoryError:
        raise ConfigError(f"{str(path)!r} is a folder; give the path of a YAML file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error})") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML: {yaml_problem(error)}; mend it there") from None
    if not isinstance(data, dict):
        came = "an empty file" if data is None else type(data).__name__
        raise ConfigError(f"{path}: expected a mapping with pool, protocol and task, got {came}")
    return data


def yaml_problem(error: yaml.YAMLError) -> str:
    """What is wrong and where, without the parser's drawing of the place."""
    mark = getattr(error, "problem_mark", None)
    place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
    return " ".join(str(getattr(error, "problem", None) or error).split()) + place


def with_text_keys(data: Any, at: str = "", origin: str = "config") -> tuple[Any, list[str]]:
    """Plain data without the keys that are no text, and one line for each of these.

    `at` is the dotted key of `data`. Raises `ConfigError`, naming `origin`, for data that holds itself.
    """
    problems: list[str] = []
    try:
        return _with_text_keys(data, at, problems), problems
    except RecursionError:
        raise ConfigError(f"{origin}: nested too deeply; an alias must not name what it stands in") from None


def _with_text_keys(data: Any, at: str, problems: list[str]) -> Any:
    below = f"{at}." if at else ""
    if isinstance(data, list):
        return [_with_text_keys(value, f"{below}{place}", problems) for place, value in enumerate(data)]
    if not isinstance(data, Mapping):
        return data
    kept = {}
    for key, value in data.items():
        if isinstance(key, str):
            kept[key] = _with_text_keys(value, f"{below}{key}", problems)
        else:
            problems.append(f"{at or 'config'}: expected names in text as keys, got {_shown(key)}; put it in quotes")
    return kept


def _shown(key: Any) -> str:
    value, written = key if isinstance(key, OddKey) else (key, str(key))
    plain = not isinstance(key, OddKey) or (isinstance(value, int | float) and written == str(value))
    return written if plain else f"{written or 'nothing'}, which YAML reads as {_read_as(value)}"


def _read_as(value: Any) -> str:
    """What YAML takes an unquoted scalar for, in words."""
    if value is None:
        return "no value"
    if isinstance(value, bool):
        return f"the truth value {str(value).lower()}"
    if isinstance(value, int | float):
        return f"the number {value}"
    return "a date" if isinstance(value, date) else type(value).__name__


class _ConfigLoader(yaml.SafeLoader):
    """YAML in which a key written twice is an error: the second would silently win."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except ValueError as error:  # a date that no calendar has, a number with too many digits
            raise yaml.constructor.ConstructorError(None, None, f"{error}", node.start_mark) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        self._refuse_twice(node)
        self.flatten_mapping(node)
        return {self._key(key): self.construct_object(value, deep) for key, value in node.value}

    def _refuse_twice(self, node: yaml.MappingNode) -> None:
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == MERGE:
                continue
            key = self._key(key_node)
            if key in seen:
                shown = key.written if isinstance(key, OddKey) else key
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {shown!r} is written twice", key_node.start_mark
                )
            seen.add(key)

    def _key(self, node: yaml.Node) -> Any:
        key = self.construct_object(node, deep=True)
        if not isinstance(key, Hashable):
            raise yaml.constructor.ConstructorError(None, None, f"expected a name as key, got {key!r}", node.start_mark)
        return key if isinstance(key, str) else OddKey(key, str(node.value))
