"""A source whose rows are read in the known way of their data set.

Left out on purpose: which sets are known; see `data_sets.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from collabsim.tasks.record import Record, read_record
from collabsim.tasks.row_forms import RawRow, Reader
from collabsim.tasks.sources import TableSource

ROLES = {
    name: name for name in ("question", "choices", "topic", "kind", "difficulty", "chance", "tests", "entry_point")
} | {"gold": "answer"}
"""The common columns that readers fill in."""


class KnownSource(TableSource):
    """A data set that is known by name."""

    def __init__(
        self,
        name: str,
        tables: Mapping[str, Sequence[RawRow]],
        read: Reader,
        *,
        kind: str = "mixed",
        shuffle: bool = False,
        prompt: str | None = None,
    ) -> None:
        super().__init__(name, tables, known=list(ROLES.values()))
        self.roles = dict(ROLES)
        self.read = read
        self.kind = None if kind == "mixed" else kind
        self.shuffle = shuffle
        self.prompt = prompt

    def record(self, row: RawRow) -> Record:
        """A row as a record. Raises `Unusable`."""
        record = read_record(self.read(row), self.roles)
        return replace(record, kind=self.kind) if record.kind is None else record
