"""The kinds of engines that there are, and which one `engine: auto` is.

In: what a config says under `engine:`. Out: an `EngineKind`. A new engine is one file with its record, and one line: in
`BUILT_IN` here, or in the entry-point group `collabsim.engines` of a package of one's own. Left out on purpose: running
engines (`shared_engines.py`).
"""

from __future__ import annotations

import logging
from importlib.metadata import EntryPoint

from collabsim.errors import ConfigError, PrerequisiteError, nearest
from collabsim.models.engines.engine_kind import EngineKind
from collabsim.plugins import load, registered

GROUP = "collabsim.engines"
AUTO = "auto"
BUILT_IN = {
    "vllm": "collabsim.models.engines.vllm_kind:VLLM",
    "transformers": "collabsim.models.engines.transformers_kind:TRANSFORMERS",
}
"""Name -> the record, written as in an entry point; a kind that nobody asks for is not imported."""

_log = logging.getLogger(__name__)
_told: set[str] = set()


def engine_names() -> list[str]:
    """What `engine:` may say."""
    return [AUTO, *BUILT_IN, *(name for name in registered(GROUP) if name not in BUILT_IN)]


def check_engine(name: str) -> None:
    """Raises `ConfigError`, naming the nearest, for an engine that is not there. Imports nothing."""
    if name != AUTO and name not in BUILT_IN and name not in registered(GROUP):
        raise ConfigError(
            f"unknown engine {name!r}{nearest(name, engine_names())}; expected one of {', '.join(engine_names())}"
        )


def find_engine(name: str) -> EngineKind:
    """The kind that `engine: name` means on this machine; `auto` is decided by `preferred_kind`.

    Raises `ConfigError` for an unknown name, `PrerequisiteError` for one whose package cannot be imported.
    """
    check_engine(name)
    if name == AUTO:
        return preferred_kind()
    return _loaded(name)


def preferred_kind() -> EngineKind:
    """The working kind with the highest preference; says once, in one line, why it is not the first of them.

    Where none works it is the last, whose start says what to install.
    """
    problems: list[str] = []
    *others, last = _by_preference()
    for kind in others:
        probe = kind.probe()
        if probe.works:
            return _told_of(kind, problems)
        problems.append(probe.problem)
    return _told_of(last, problems)


def all_kinds() -> list[EngineKind]:
    """Every kind that can be imported, by falling preference; those that are only taken when named come last."""
    kinds = []
    for name in engine_names()[1:]:
        try:
            kinds.append(_loaded(name))
        except PrerequisiteError as error:
            _tell_once(str(error))
    return sorted(kinds, key=lambda kind: -1 if kind.preference is None else kind.preference, reverse=True)


def _by_preference() -> list[EngineKind]:
    return [kind for kind in all_kinds() if kind.preference is not None]


def _loaded(name: str) -> EngineKind:
    point = EntryPoint(name, BUILT_IN[name], GROUP) if name in BUILT_IN else registered(GROUP)[name]
    kind = load(point, "engine")
    if not isinstance(kind, EngineKind) or kind.name != name:
        raise PrerequisiteError(
            f"engine {name!r}: expected {point.value!r} to be an EngineKind of that name, got {kind!r}"
        )
    return kind


def _told_of(kind: EngineKind, problems: list[str]) -> EngineKind:
    if problems:
        _tell_once(f"models run on {kind.title}: {'; '.join(problems)}")
    return kind


def _tell_once(line: str) -> None:
    if line not in _told:
        _told.add(line)
        _log.warning(line)
