"""Reading a config: YAML file, `--set` overrides, strict validation, and the identity of what was read.

In: a path and overrides. Out: a `Config`. Precedence: file < `--set` < flag (a flag is short for a `--set`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from collabsim.config.schema import PLACEMENT, Config
from collabsim.errors import ConfigError, nearest
from collabsim.seeds import digest

S = TypeVar("S", bound=BaseModel)


def read_config(path: Path, overrides: Sequence[str] = ()) -> Config:
    """The config in `path` with `a.b=c` overrides applied in order. Raises `ConfigError` with the offending key."""
    data = _read_yaml(path)
    for override in overrides:
        _apply(data, override)
    return parse_config(data, str(path))


def parse_config(data: Mapping[str, Any], origin: str = "config") -> Config:
    """A `Config` of plain data. Raises `ConfigError` that names the key, what was expected and what came."""
    try:
        return Config.model_validate(data)
    except ValidationError as error:
        raise ConfigError("; ".join(f"{origin}: {_explain(problem)}" for problem in error.errors())) from None


def config_identity(config: Config) -> str:
    """Hash of the resolved config without the keys that only say where and how it runs."""
    return digest(identity_fields(config))


def identity_fields(config: Config) -> dict[str, Any]:
    """The resolved config as JSON, without placement keys: what two runs must share to be one run."""
    return config.model_dump(mode="json", exclude=set(PLACEMENT))


def default_out(path: Path, config: Config) -> Path:
    """`runs/<config stem>-<8 hex>`, below the current folder."""
    return Path("runs") / f"{path.stem}-{config_identity(config)[:8]}"


MERGE = "tag:yaml.org,2002:merge"
"""The key `<<`, which takes over what it does not find beside it."""


class _UniqueKeyLoader(yaml.SafeLoader):
    """YAML in which a key written twice is an error: the second would silently win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == MERGE:
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.constructor.ConstructorError(
                    None, None, f"expected a name as key, got {key!r}", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is written twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def _load(text: str) -> Any:
    return yaml.load(text, _UniqueKeyLoader)


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        data = _load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"no config file {str(path)!r}; give the path of a YAML file") from None
    except IsADirectoryError:
        raise ConfigError(f"{str(path)!r} is a folder; give the path of a YAML file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error})") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML: {_yaml_problem(error)}; mend it there") from None
    if not isinstance(data, dict):
        came = "an empty file" if data is None else type(data).__name__
        raise ConfigError(f"{path}: expected a mapping with pool, protocol and task, got {came}")
    return data


def _yaml_problem(error: yaml.YAMLError) -> str:
    """What is wrong and where, without the parser's drawing of the place."""
    mark = getattr(error, "problem_mark", None)
    place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
    return " ".join(str(getattr(error, "problem", None) or error).split()) + place


def _apply(data: dict[str, Any], override: str) -> None:
    key, separator, text = override.partition("=")
    if not separator or not key.strip():
        raise ConfigError(f"--set {override!r}: expected a.b=value, for example sweep.method=exact")
    place, rest = data, key.strip().split(".")
    while (step := _next_key(place, rest)) != (last := ".".join(rest)):
        if place.get(step) is None:
            place[step] = {}
        place, rest = place[step], rest[step.count(".") + 1 :]
        if not isinstance(place, dict):
            raise ConfigError(f"--set {override!r}: {step!r} is not a section")
    place[last] = _override_value(override, text)


def _next_key(place: Mapping[str, Any], rest: Sequence[str]) -> str:
    """The longest key of `place` that the rest of a dotted key begins with (seats may be called `gpt-4.1`), or a new one."""
    known = (".".join(rest[:length]) for length in range(len(rest), 0, -1))
    return next((key for key in known if key in place), rest[0])


def _override_value(override: str, text: str) -> Any:
    """The value after `=`, as YAML; what is no YAML is text."""
    try:
        return _load(text)
    except yaml.constructor.ConstructorError as error:
        raise ConfigError(f"--set {override!r}: {error.problem}; give it once, or in quotes") from None
    except yaml.YAMLError:
        return text


def parse_section(section: type[S], data: Mapping[str, Any], at: str) -> S:
    """A section that is checked by its owner, below the dotted key `at`. Raises `ConfigError` as `parse_config` does."""
    try:
        return section.model_validate(data)
    except ValidationError as error:
        raise ConfigError("; ".join(_explain(problem, at, section) for problem in error.errors())) from None


def _explain(problem: Any, at: str = "", section: type[BaseModel] = Config) -> str:
    location = [*([at] if at else []), *(str(part) for part in problem["loc"])]
    where = ".".join(location)
    if problem["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        known = _keys_at([str(part) for part in problem["loc"][:-1]], section)
        return f"unknown key {where!r}{nearest(location[-1], known)}; known here: {', '.join(sorted(known))}"
    if problem["type"] == "missing":
        return f"the key {where!r} is missing; add it"
    came = problem.get("input")
    if location[-1:] == ["[key]"]:
        return f"{'.'.join(location[:-2])}: expected names in text as keys, got {came!r}; put it in quotes"
    shown = f", got {came!r}" if isinstance(came, str | int | float | bool | None) else ""
    return f"{where or 'config'}: {problem['msg'].removeprefix('Value error, ')}{shown}"


def _keys_at(location: Sequence[str], section: type[BaseModel]) -> list[str]:
    """Names that the schema knows at a place, following sections and seats by name."""
    model: Any = section
    for part in location:
        field = model.model_fields.get(part) if _is_model(model) else None
        annotation = field.annotation if field is not None else model
        model = _section_in(annotation)
    return list(model.model_fields) if _is_model(model) else list(getattr(model, "__slots__", ()))


def _is_model(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseModel)


def _section_in(annotation: Any) -> Any:
    """The section class inside `X`, `X | None` or `dict[str, X]`."""
    inner = [entry for entry in getattr(annotation, "__args__", ()) if entry not in (str, type(None))]
    return inner[0] if inner else annotation
