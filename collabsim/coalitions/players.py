"""Players: what a coalition switches.

In: a pool. Out: player names and the seats that each of them stands for. A player is a seat, or a model with all its
seats at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from collabsim.coalitions.masks import names_of
from collabsim.pool import Pool


@dataclass(frozen=True, slots=True, eq=False)
class Players:
    """The players of a game in the order of the pool; player i is bit i of a mask."""

    seats: Mapping[str, tuple[str, ...]]
    """Player name to its seats."""
    _present: dict[int, frozenset[str]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, pool: Pool, kind: Literal["seats", "models"] = "seats") -> Players:
        """Every seat by itself, or every distinct model (named after its first seat) with all its seats."""
        groups = {seat: [seat] for seat in pool} if kind == "seats" else pool.same_model()
        return cls({name: tuple(seats) for name, seats in groups.items()})

    @property
    def names(self) -> tuple[str, ...]:
        """Player names in the order of their bits."""
        return tuple(self.seats)

    def __len__(self) -> int:
        return len(self.seats)

    def present(self, mask: int) -> frozenset[str]:
        """Names of the seats that are on under a mask."""
        if mask not in self._present:
            names = names_of(self.names, mask)
            self._present[mask] = frozenset(seat for name in names for seat in self.seats[name])
        return self._present[mask]
