"""The form of every source of items, and tables of rows.

In: the bare name of a known data set, `jsonl:PATH`, `reasoning_gym:NAME`, `moco:NAME`, `hub:ID`, or rows in memory. Out: a
`Source`: rows by split and how a row becomes a `Record`. Left out on purpose: which rows become items; see `selection.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from collabsim.errors import ConfigError, DataError, nearest
from collabsim.scorers.reading.scoring import AnswerScorer
from collabsim.tasks.record import Record, columns, read_record

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

    def scorer(self) -> AnswerScorer | None:
        """The scorer of all its items, if the source brings one."""

    @property
    def other_kinds(self) -> tuple[str, ...]:
        """Kinds that the task may ask for in place of the scorer that the source brings; empty when it brings none."""

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
    other_kinds: tuple[str, ...] = ()

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

    def scorer(self) -> AnswerScorer | None:
        """None: each item's kind has a scorer of its own."""
        return None


def table_of_rows(name: str, rows: Sequence[Mapping[str, Any]], fields: Mapping[str, str] | None) -> TableSource:
    """Rows in memory as a source; a `split` column divides them."""
    tables: dict[str, list[Mapping[str, Any]]] = {}
    divided = any("split" in row for row in rows)
    for row in rows:
        tables.setdefault(str(row.get("split", "test")) if divided else "", []).append(row)
    return TableSource(name, tables or {"": []}, fields=fields, kinds=True)


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
