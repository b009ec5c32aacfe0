"""Players: the seats, models or nodes that coalitions switch on and off.

In: a system. Out: player names, and the seats of each. A player is a seat, a model with all its seats at once,
or a node of a foreign graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from collabsim.coalitions.masks import names_of
from collabsim.errors import ConfigError
from collabsim.pool import Pool

if TYPE_CHECKING:
    from collabsim.system.system import System


@dataclass(frozen=True, slots=True, eq=False)
class Players:
    """The players of a game in the order of the pool; player i is bit i of a mask."""

    seats: Mapping[str, tuple[str, ...]]
    """Player name to its seats; a node of a foreign graph stands for itself."""
    own: Mapping[str, tuple[str, ...]] | None = None
    """Player name to the seats whose own answers are its individual strength; None: its seats."""
    _present: dict[int, frozenset[str]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, pool: Pool, kind: Literal["seats", "models"] = "seats") -> Players:
        """Every seat by itself, or every distinct model (named after its first seat) with all its seats."""
        groups = {seat: [seat] for seat in pool} if kind == "seats" else pool.same_model()
        return cls({name: tuple(seats) for name, seats in groups.items()})

    @classmethod
    def of_system(cls, system: System, kind: Literal["seats", "models"] = "seats") -> Players:
        """The players of a system. Raises `ConfigError` for `models` of an application, which names its own players."""
        if system.players == system.pool.seats:
            return cls.of(system.pool, kind)
        if kind == "models":
            raise ConfigError("players: 'models' is for pools; an application names its players itself, leave it out")
        return cls({name: (name,) for name in system.players}, system.own_answers)

    def own_seats(self, name: str) -> tuple[str, ...]:
        """The seats whose own answers are the individual strength of a player; none for a node."""
        return (self.seats if self.own is None else self.own)[name]

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
