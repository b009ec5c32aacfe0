"""The game table: every outcome by (coalition, item), in memory.

In: outcomes as they come, in any order. Out: columns for the maths, and a list of the missing outcomes. A missing
outcome is NaN and never a number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from collabsim.coalitions.masks import label
from collabsim.errors import MissingOutcomesError
from collabsim.item import Verdict

Column = NDArray[np.float64]
"""Outcomes of one coalition, [n_items], in the order of the table's items."""

VERDICTS: tuple[Verdict | None, ...] = (None, *get_args(Verdict))
"""None where no seat replied."""


class GameTable:
    """Outcomes of a game, with coalitions as bitmasks over `players`."""

    def __init__(self, players: Sequence[str], item_ids: Sequence[str]) -> None:
        self.players = tuple(players)
        self.item_ids = tuple(item_ids)
        self._row = {item: row for row, item in enumerate(self.item_ids)}
        self._columns: dict[int, Column] = {}
        self._verdicts: dict[int, NDArray[np.int8]] = {}
        self._cut: dict[int, NDArray[np.bool_]] = {}

    def put(
        self, item_id: str, mask: int, outcome: float, verdict: Verdict | None = None, *, cut: bool = False
    ) -> None:
        """Enter one outcome, in [0, 1]; a later one for the same place replaces it. `cut`: it ended at a token limit."""
        column = self._columns.get(mask)
        if column is None:
            column = self._columns[mask] = np.full(len(self.item_ids), np.nan)
            self._verdicts[mask] = np.zeros(len(self.item_ids), dtype=np.int8)
            self._cut[mask] = np.zeros(len(self.item_ids), dtype=np.bool_)
        row = self._row[item_id]
        column[row] = outcome
        self._verdicts[mask][row] = VERDICTS.index(verdict)
        self._cut[mask][row] = cut

    def has(self, item_id: str, mask: int) -> bool:
        """Whether this outcome is there."""
        column = self._columns.get(mask)
        return column is not None and bool(column[self._row[item_id]] == column[self._row[item_id]])

    def outcome(self, item_id: str, mask: int) -> float:
        """One outcome. Raises `MissingOutcomesError` when it is not there."""
        if not self.has(item_id, mask):
            raise MissingOutcomesError(
                f"no outcome of coalition {label(self.players, mask)!r} on item {item_id!r}; run the sweep again"
            )
        return float(self._columns[mask][self._row[item_id]])

    def column(self, mask: int) -> Column:
        """Outcomes of a coalition on all items, [n_items]. Raises `MissingOutcomesError` when any is missing."""
        column = self._columns.get(mask)
        missing = len(self.item_ids) if column is None else int(np.isnan(column).sum())
        if column is None or missing:
            raise MissingOutcomesError(
                f"coalition {label(self.players, mask)!r} has no outcome on {missing} of {len(self.item_ids)} items; "
                "run the sweep again, or drop those items with on_missing: drop_items"
            )
        return column

    def dense(self) -> Column:
        """All 2^n columns, [n_items, 2^n]. Raises `MissingOutcomesError` when any outcome is missing."""
        return np.stack([self.column(mask) for mask in range(1 << len(self.players))], axis=1)

    def missing(self, runs: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
        """Those of the runs, as (item id, mask), that have no outcome."""
        return [(item, mask) for item, mask in runs if not self.has(item, mask)]

    def only(self, item_ids: Collection[str]) -> GameTable:
        """A table of these items alone, in this table's order."""
        ids = [item for item in self.item_ids if item in item_ids]
        rows = [self._row[item] for item in ids]
        table = GameTable(self.players, ids)
        table._columns = {mask: column[rows] for mask, column in self._columns.items()}
        table._verdicts = {mask: verdicts[rows] for mask, verdicts in self._verdicts.items()}
        table._cut = {mask: cut[rows] for mask, cut in self._cut.items()}
        return table

    def cut_rate(self, mask: int) -> float:
        """Share of the items on which a coalition's final output ended at a token limit, in [0, 1]."""
        self.column(mask)
        return float(self._cut[mask].mean())

    def rate(self, verdict: Verdict, mask: int) -> float:
        """Share of the items on which a coalition's final output got this verdict, in [0, 1]."""
        self.column(mask)
        return float((self._verdicts[mask] == VERDICTS.index(verdict)).mean())

    def means(self, masks: Iterable[int]) -> Mapping[int, float]:
        """v(S) of these coalitions."""
        return {mask: float(self.column(mask).mean()) for mask in masks}
