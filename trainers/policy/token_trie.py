"""Rows of tokens as a trie: what rows have in common from their start on is read by the model once.

In: rows (prompt ids and sampled ids). Out: the trie's tokens as one sequence with positions, who may see whom, and where in
it each sampled token is predicted. A group asks one prompt G times, and all prompts of a seat begin with the same words, so
that the trie of a step is several times shorter than its rows; equal replies become one. Left out on purpose: the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .token_row import TokenRow

WORTH = 0.7
"""Share of the rows' own tokens below which a trie pays for its mask."""


class TokenTrie(NamedTuple):
    """Distinct prefixes of rows, parents before children."""

    ids: list[int]
    """The last token of each prefix."""
    positions: list[int]
    """Its place in its row, from 0."""
    parents: list[int]
    """Index of the prefix without its last token; -1 at the start."""
    places: list[list[int]]
    """For each row, the index of the prefix that predicts each of its sampled ids."""

    def visible(self) -> NDArray[np.bool_]:
        """[tokens, tokens]: whether the token of a line may see the token of a column: itself, and those it follows."""
        size = len(self.ids)
        seen = np.zeros((size, size), dtype=np.bool_)
        for index, parent in enumerate(self.parents):
            if parent >= 0:
                seen[index] = seen[parent]
            seen[index, index] = True
        return seen


def trie_of(rows: Sequence[TokenRow]) -> TokenTrie:
    """The trie of rows; nothing follows a row's last id, so that it is not read."""
    trie = TokenTrie([], [], [], [])
    known: dict[tuple[int, int], int] = {}
    for prompt_ids, ids in rows:
        path = []
        parent = -1
        for position, token in enumerate((*prompt_ids, *ids[:-1])):
            key = (parent, token)
            if (index := known.get(key)) is None:
                index = known[key] = len(trie.ids)
                trie.ids.append(token)
                trie.positions.append(position)
                trie.parents.append(parent)
            path.append(index)
            parent = index
        trie.places.append(path[len(prompt_ids) - 1 :])
    return trie


def tries_of(rows: Sequence[TokenRow], longest: int) -> Iterator[tuple[list[int], TokenTrie]]:
    """All rows in tries of at most `longest` tokens (a longer row has one of its own), each with the numbers of its rows.

    Rows with the longest common start are put together.
    """
    taken: list[int] = []
    length = 0
    last: tuple[int, ...] = ()
    for number in sorted(range(len(rows)), key=lambda one: (*rows[one].prompt_ids, *rows[one].ids)):
        line: tuple[int, ...] = (*rows[number].prompt_ids, *rows[number].ids[:-1])
        more = len(line) - _common(line, last)
        if taken and length + more > longest:
            yield taken, trie_of([rows[one] for one in taken])
            taken, length, more = [], 0, len(line)
        taken.append(number)
        length, last = length + more, line
    if taken:
        yield taken, trie_of([rows[one] for one in taken])


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """Length of the common start."""
    for place, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return place
    return min(len(one), len(other))


def worth_sharing(rows: Sequence[TokenRow], tries: Sequence[TokenTrie]) -> bool:
    """Whether the tries, padded to the longest, are much shorter than the rows."""
    padded = len(tries) * max(len(trie.ids) for trie in tries)
    return padded < WORTH * sum(len(row.prompt_ids) + len(row.ids) - 1 for row in rows)
