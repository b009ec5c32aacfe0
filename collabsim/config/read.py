"""Reading a config: YAML file, `--set` overrides, strict validation, and the identity of what was read.

In: a path and overrides, or plain data. Out: a `Config`, or a section of one. Precedence: file < `--set` < flag (a flag
is short for a `--set`). Every command reads its config and its own section here, so all refuse a mistake in the same
words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from collabsim.config.expected import known_keys
from collabsim.config.overrides import apply_override
from collabsim.config.problems import below_a_section, problems_of, unknown_key
from collabsim.config.schema import PLACEMENT, Config
from collabsim.config.yaml_text import read_yaml, with_text_keys
from collabsim.errors import ConfigError
from collabsim.paths import user_path
from collabsim.seeds import digest

S = TypeVar("S", bound=BaseModel)


def read_config(path: Path, overrides: Sequence[str] = ()) -> Config:
    """The config in `path` with `a.b=c` overrides applied in order. Raises `ConfigError` with the offending key."""
    data = read_yaml(path)
    for override in overrides:
        apply_override(data, override)
    return parse_config(data, str(path))


def parse_config(data: Mapping[str, Any], origin: str = "config") -> Config:
    """A `Config` of plain data. Raises `ConfigError` that names the key, what was expected and what came."""
    given, problems = with_text_keys(data, origin=origin)
    known = known_keys(Config)
    problems += [unknown_key(key, known) + below_a_section(key, Config) for key in given if key not in known]
    config, more = _validated(Config, {key: value for key, value in given.items() if key in known})
    if config is None or problems:
        raise ConfigError("; ".join(f"{origin}: {problem}" for problem in [*problems, *more]))
    return config


def parse_section(section: type[S], data: Mapping[str, Any], at: str) -> S:
    """A section that is checked by its owner, below the dotted key `at`. Raises `ConfigError` as `parse_config`
    does."""
    given, problems = with_text_keys(data, at, origin=at)
    parsed, more = _validated(section, given, at)
    if parsed is None or problems:
        raise ConfigError("; ".join([*problems, *more]))
    return parsed


def _validated(section: type[S], data: Any, at: str = "") -> tuple[S | None, list[str]]:
    try:
        return section.model_validate(data), []
    except ValidationError as error:
        return None, problems_of(error, data, section, at)


def config_identity(config: Config) -> str:
    """Hash of the resolved config without the keys that only say where and how it runs."""
    return digest(identity_fields(config))


def identity_fields(config: Config) -> dict[str, Any]:
    """The resolved config as JSON, without placement keys and sections of commands: what two runs share to be one
    run."""
    return config.model_dump(mode="json", exclude={*PLACEMENT, *config.sections})


def default_out(path: Path, config: Config) -> Path:
    """`runs/<config stem>-<8 hex>`, below the current folder."""
    return run_place(path, None, config_identity(config))


def run_place(path: Path, out: str | None, identity: str) -> Path:
    """The folder of a run: `out` if the config names one, else `runs/<config stem>-<8 hex of the identity>`."""
    return user_path(out, "out") if out else Path("runs") / f"{path.stem}-{identity[:8]}"
