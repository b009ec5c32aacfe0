"""An application named in a config, as a system.

In: the `protocol:` section of a config with `graph: "package.module:app"` or `graph: "file.py:app"`. Out: a `GraphSystem`.
A file is run once per process, as a module of its own; what stands beside it can be imported by it.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from collabsim.config.read import parse_section
from collabsim.config.schema import ApplicationConfig, Config
from collabsim.context import Limits
from collabsim.errors import ConfigError, nearest
from collabsim.foreign.absence import FILE_MODULE, GOTO, WORDS
from collabsim.foreign.graph_system import GraphSystem, from_graph
from collabsim.paths import user_path
from collabsim.pool import Pool
from collabsim.seeds import digest
from collabsim.store import GenerationStore


def make_graph_system(config: Config, pool: Pool, helpers: Pool, store: GenerationStore, base: Path) -> GraphSystem:
    """The application of a config, not fitted yet; files are found from `base`.

    Raises `ConfigError` for unknown keys, for what cannot be loaded, and as `from_graph` does.
    """
    given = parse_section(ApplicationConfig, config.protocol.options, "protocol")
    if config.protocol.roles or config.protocol.order:
        raise ConfigError("protocol: an application has no roles and no order of its seats; leave these keys out")
    system = from_graph(
        as_graph(load_object(given.graph, base, "protocol.graph"), given.graph),
        pool,
        players=given.players,
        output=load_object(given.output, base, "protocol.output") if given.output else None,
        input=load_object(given.input, base, "protocol.input") if given.input else None,
        absent={name: _rule(rule, base, name) for name, rule in given.absent.items()},
        name=given.label or given.graph.rpartition("/")[2],
        revision=given.revision,
        recursion_limit=given.recursion_limit,
        on_limit=given.on_limit,
        memory=given.memory,
        helpers=helpers,
        store=store,
        limits=Limits(on_overflow=config.sweep.on_overflow),
    )
    return replace(system, alone=config.sweep.alone, absent=config.sweep.absent)


def as_graph(value: Any, name: str) -> Any:
    """A graph, or what a function without parameters makes. Raises `ConfigError` when the function needs some."""
    from langgraph.graph import StateGraph
    from langgraph.pregel import Pregel

    if isinstance(value, StateGraph | Pregel) or not callable(value):
        return value
    try:
        return value()
    except TypeError as error:
        raise ConfigError(
            f"protocol.graph: {name!r} is a function, and calling it without arguments failed: {error}"
        ) from error


def load_object(reference: str, base: Path, key: str) -> Any:
    """What `package.module:name` or `file.py:name` names; a relative file starts from `base`.

    Raises `ConfigError`, naming `key`, when there is no such thing.
    """
    place, separator, name = reference.rpartition(":")
    if not separator or not place or not name:
        raise ConfigError(f"{key}: expected 'package.module:name' or 'file.py:name', got {reference!r}")
    try:
        is_file = place.endswith(".py")
        module = _file_module(base / user_path(place, key)) if is_file else importlib.import_module(place)
    except (ImportError, TypeError) as error:  # TypeError: a relative module
        raise ConfigError(f"{key}: {place!r} cannot be imported: {error}") from error
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise ConfigError(f"{key}: {place!r} has no {part!r}{nearest(part, vars(module))}")
        found = getattr(found, part)
    return found


def _file_module(path: Path) -> ModuleType:
    """The module of a file, run once per process."""
    path = path.resolve()
    if not path.is_file():
        raise ImportError(f"there is no file {str(path)!r}")
    name = f"{FILE_MODULE}{path.stem}_{digest(str(path))[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{str(path)!r} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # type hints of the application's state are looked up there
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _rule(rule: Any, base: Path, node: str) -> Any:
    """A rule of the config: a function where a text names one."""
    if isinstance(rule, str) and rule not in WORDS and not rule.startswith(GOTO) and _names_object(rule):
        return load_object(rule, base, f"protocol.absent.{node}")
    if isinstance(rule, str | Mapping):
        return rule
    raise ConfigError(f"protocol.absent.{node}: expected a word, an update or a function's name, got {rule!r}")


def _names_object(text: str) -> bool:
    """Whether a text looks like `package.module:name` or `file.py:name`, and not like something to say."""
    place, _, name = text.rpartition(":")
    return bool(place) and name.isidentifier() and " " not in place
