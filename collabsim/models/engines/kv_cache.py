"""Keys and values of a batch whose rows come and go, in place.

A layer holds one tensor [rows, heads, columns, size] in which every row ends at the same column: what is shorter has
padding on its left. So a new column is written, not concatenated; a finished row is overwritten by the last one; a new
row is written beside the others. transformers' own `DynamicLayer` copies everything for each token, which at 64 rows is
a third of a step on a CPU. Unused places hold zeros, since garbage that is not a number would leak through the mask.
Imports transformers: import this module where an engine starts. Left out on purpose: sliding windows drop nothing here (the
mask alone hides what is outside), no paging; rows that were handed the same text hold copies of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from transformers.cache_utils import Cache, DynamicLayer

_GROWTH = 128
"""Columns added when the last one is used up."""


class RowsLayer(DynamicLayer):  # type: ignore[misc, unused-ignore]
    """The keys and values of one layer."""

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Append columns, [rows, heads, new columns, size] each; returns all columns that are in use."""
        rows, new = key_states.shape[0], key_states.shape[2]
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self._key_store, self._value_store = (_room(states, rows, new) for states in (key_states, value_states))
            self._rows, self._start, self._end = rows, 0, 0
        if self._end + new > self._key_store.shape[2]:
            self._move(self._rows, self._end - self._start, new)
        end = self._end + new
        self._key_store[:rows, :, self._end : end] = key_states
        self._value_store[:rows, :, self._end : end] = value_states
        self._end = end
        return self._show()

    def _show(self) -> tuple[Tensor, Tensor]:
        self.keys = self._key_store[: self._rows, :, self._start : self._end]
        self.values = self._value_store[: self._rows, :, self._start : self._end]
        return self.keys, self.values

    def _move(self, rows: int, columns: int, new: int = 0) -> None:
        """Into tensors with room for `rows` and `columns` + `new`; what is there ends at `columns`."""
        keys, values = self.keys, self.values
        start = columns - keys.shape[2]
        self._key_store = _room(keys, rows, columns + new)
        self._key_store[: keys.shape[0], :, start:columns] = keys
        self._value_store = _room(values, rows, columns + new)
        self._value_store[: values.shape[0], :, start:columns] = values
        self._start, self._end = start, columns
        self._show()

    def join(self, other: RowsLayer) -> None:
        """Take the rows of another layer in, after those that are here."""
        there = other.keys.shape[2]
        rows = self._rows + other.keys.shape[0]
        if rows > self._key_store.shape[0] or there > self._end:
            self._move(max(rows, self._key_store.shape[0]), max(there, self._end - self._start))
        start = min(self._start, self._end - there)
        for store, states in ((self._key_store, other.keys), (self._value_store, other.values)):
            store[: self._rows, :, start : self._start] = 0
            store[self._rows : rows, :, start : self._end - there] = 0
            store[self._rows : rows, :, self._end - there : self._end] = states
        self._rows, self._start = rows, start
        self._show()

    def hand_out(self, owners: Sequence[int]) -> None:
        """Make a row for each of `owners` (rows that are here, also several times), in that order."""
        self._key_store, self._value_store = self._key_store[list(owners)], self._value_store[list(owners)]
        self._rows = len(owners)
        self._show()

    def keep(self, count: int, moves: Sequence[tuple[int, int]], columns: int) -> None:
        """Keep the first `count` rows and the last `columns` columns, after the copies (from row, to row) of `moves`."""
        self._start = self._end - columns
        if moves:
            origins, places = [origin for origin, _ in moves], [place for _, place in moves]
            for store in (self._key_store, self._value_store):
                store[places, :, self._start : self._end] = store[origins, :, self._start : self._end]
        self._rows = count
        self._show()


def _room(like: Tensor, rows: int, columns: int) -> Tensor:
    return like.new_zeros(rows, like.shape[1], columns + _GROWTH, like.shape[3])


def new_cache(layers: int) -> Cache:
    """An empty cache for a model of so many layers."""
    return Cache(layers=[RowsLayer() for _ in range(layers)])


def join(cache: Cache, other: Cache) -> None:
    """Append the rows of `other` to those of `cache`."""
    for layer, new in zip(cache.layers, other.layers, strict=True):
        layer.join(new)


def hand_out(cache: Cache, owners: Sequence[int]) -> None:
    """See `RowsLayer.hand_out`; for all layers."""
    for layer in cache.layers:
        layer.hand_out(owners)


def keep(cache: Cache, count: int, moves: Sequence[tuple[int, int]], columns: int) -> None:
    """See `RowsLayer.keep`; for all layers."""
    for layer in cache.layers:
        layer.keep(count, moves, columns)
