"""Where items come from: one form for every source.

In: the bare name of a known data set, `jsonl:PATH`, `reasoning_gym:NAME`, `moco:NAME`, `hub:ID`, or rows in memory. Out: a
`Source`: rows by split and how a row becomes a `Record`. Left out on purpose: which rows become items; see `selection.py`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from collabsim.errors import ConfigError, DataError
from collabsim.pool import nearest
from collabsim.tasks.data_sets import DATA_SETS
from collabsim.tasks.item import Scorer
from collabsim.tasks.records import Record, columns, read_record

DEV_SPLITS = ("dev", "validation", "valid", "val")
"""Names under which a source may keep items for choosing and fitting, in order of preference."""


class Source(Protocol):
    """Rows of a data set or a generator."""

    @property
    def name(self) -> str:
        """What the source calls itself, scheme included."""

    @property
    def endless(self) -> bool:
        """True for a generator, whose rows go on (and repeat) until a cap."""

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that the source has of its own; empty when its rows are undivided."""

    def rows(self, split: str, seed: int) -> Iterator[Mapping[str, Any]]:
        """The rows of a split; a generator draws them from `seed`. Raises `ConfigError` for an unknown split."""

    def record(self, row: Mapping[str, Any]) -> Record:
        """A row as a record. Raises `Unusable`."""

    def scorer(self) -> Scorer | None:
        """The scorer of all its items, if the source brings one."""

    @property
    def shuffle(self) -> bool:
        """Whether options are put into an order of the item's own unless the task says otherwise."""

    @property
    def prompt(self) -> str | None:
        """The template of its items unless the task gives one; None for the wording of their kind."""


class TableSource:
    """A source whose rows are all there, by split."""

    endless = False
    shuffle: bool = False
    prompt: str | None = None

    def __init__(
        self,
        name: str,
        tables: Mapping[str, Sequence[Mapping[str, Any]]],
        *,
        fields: Mapping[str, str] | None = None,
        known: Sequence[str] | None = None,
        kinds: bool = False,
    ) -> None:
        self.name = name
        self.tables = tables
        self.splits = () if set(tables) == {""} else tuple(tables)
        names = known or list(dict.fromkeys(key for table in tables.values() for row in table for key in row))
        self.roles = columns(fields, names, name)
        if not kinds and "kind" not in (fields or {}):
            self.roles.pop("kind", None)
        needed = ("question",) if "tests" in self.roles else ("question", "gold")
        missing = [role for role in needed if role not in self.roles]
        if missing and names:
            raise DataError(
                f"{name} has no column for {' and '.join(missing)}; it has {', '.join(names)}; name them with task.fields"
            )

    def rows(self, split: str, seed: int) -> Iterator[Mapping[str, Any]]:  # noqa: ARG002
        """The rows of a split."""
        if not self.splits:
            return iter(self.tables[""])
        if split not in self.tables:
            raise ConfigError(
                f"task.split: {self.name} has no split {split!r}{nearest(split, self.splits)}; "
                f"it has {', '.join(self.splits)}"
            )
        return iter(self.tables[split])

    def record(self, row: Mapping[str, Any]) -> Record:
        """A row as a record. Raises `Unusable`."""
        return read_record(row, self.roles)

    def scorer(self) -> Scorer | None:
        """None: each item's kind has a scorer of its own."""
        return None


class Address(NamedTuple):
    """What a source is opened with."""

    name: str
    """The part behind the scheme."""
    options: dict[str, Any]
    split: str
    base: Path
    fields: Mapping[str, str] | None


def open_source(
    source: str | Sequence[Mapping[str, Any]],
    *,
    options: Mapping[str, Any] | None = None,
    split: str = "test",
    base: str | Path | None = None,
    fields: Mapping[str, str] | None = None,
) -> Source:
    """The source that `source` names. Relative paths start from `base` (the config file's folder).

    Raises `ConfigError` for an unknown scheme, name, option or column, `DataError` for a file that cannot be read,
    `PrerequisiteError` for a package that is missing.
    """
    if not isinstance(source, str):
        return table_of_rows("rows", source, fields)
    scheme, _, name = source.partition(":")
    if source.strip() in DATA_SETS:
        from collabsim.tasks.known import open_known

        return open_known(source.strip(), options or {}, Path(base or "."), fields)
    if scheme not in SCHEMES or not name.strip():
        shown = ", ".join(f"{known}:..." for known in SCHEMES)
        raise ConfigError(
            f"task.source: expected {shown} or a known data set ({', '.join(DATA_SETS)}), got {source!r}"
            f"{nearest(scheme, [*SCHEMES, *DATA_SETS])}"
        )
    return SCHEMES[scheme](Address(name.strip(), dict(options or {}), split, Path(base or "."), fields))


def table_of_rows(name: str, rows: Sequence[Mapping[str, Any]], fields: Mapping[str, str] | None) -> TableSource:
    """Rows in memory as a source; a `split` column divides them."""
    tables: dict[str, list[Mapping[str, Any]]] = {}
    divided = any("split" in row for row in rows)
    for row in rows:
        tables.setdefault(str(row.get("split", "test")) if divided else "", []).append(row)
    return TableSource(name, tables or {"": []}, fields=fields, kinds=True)


def _open_jsonl(address: Address) -> Source:
    no_options("jsonl", address.options)
    path = address.base / os.path.expanduser(address.name)  # an unknown `~name` stays, and is then not found
    return table_of_rows(f"jsonl:{address.name}", read_jsonl(path), address.fields)


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON Lines file. Raises `DataError` with the line that is broken."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"cannot read {path}: {getattr(error, 'strerror', None) or error}; check task.source"
        ) from error
    rows = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"{path} line {number}: expected one JSON object a line, got {line[:60]!r} ({error})"
            ) from error
        if not isinstance(row, dict):
            raise DataError(f"{path} line {number}: expected a JSON object, got {type(row).__name__}")
        rows.append(row)
    return rows


def no_options(scheme: str, options: Mapping[str, Any]) -> None:
    """Raises `ConfigError` for options given to a source that takes none."""
    if options:
        raise ConfigError(f"task.options: {scheme}: takes no options, got {sorted(options)}; remove them")


def _open_reasoning_gym(address: Address) -> Source:
    from collabsim.tasks.generators import GeneratorSource

    if address.fields:
        raise ConfigError("task.fields: reasoning_gym: items have no columns to name; remove it")
    return GeneratorSource(address.name, address.options)


def _open_moco(address: Address) -> Source:
    from collabsim.tasks.moco import open_moco

    no_options("moco", address.options)
    return open_moco(address.name, address.fields)


def _open_hub(address: Address) -> Source:
    from collabsim.tasks.hub import open_hub

    return open_hub(address.name, address.options, address.split, address.base, address.fields)


SCHEMES: dict[str, Callable[[Address], Source]] = {
    "jsonl": _open_jsonl,
    "reasoning_gym": _open_reasoning_gym,
    "moco": _open_moco,
    "hub": _open_hub,
}
