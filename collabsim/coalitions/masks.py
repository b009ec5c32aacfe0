"""Coalitions as int bitmasks over an ordered tuple of player names: bit i is player i.

In: player names and sets of them. Out: masks, and back to names. Masks are for arithmetic only: files, messages and
tables carry names or labels (`a+b`, in player order, empty for nobody), so that another tool cannot misread the bits.
Left out on purpose: anything about what a player is (a seat, a model, a node).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

from collabsim.errors import ConfigError

_ESCAPE = re.compile(r"([\\+])")
_PART = re.compile(r"(?:\\.|[^\\+])+")


def check_players(players: Sequence[str]) -> tuple[str, ...]:
    """The player names as a tuple. Raises `ConfigError` when one is empty or appears twice."""
    names = tuple(players)
    if any(not name for name in names) or len(set(names)) < len(names):
        raise ConfigError(f"expected distinct, non-empty player names, got {list(names)}; rename the players")
    return names


def mask_of(players: Sequence[str], names: Iterable[str]) -> int:
    """The mask of the players called `names`. Raises `ConfigError` for a name that is not a player's."""
    mask = 0
    for name in names:
        if name not in players:
            close = difflib.get_close_matches(name, players, n=1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise ConfigError(f"no player is called {name!r}; {hint}the players are {', '.join(players) or '(none)'}")
        mask |= 1 << players.index(name)
    return mask


def names_of(players: Sequence[str], mask: int) -> tuple[str, ...]:
    """The names of the players in `mask`, in player order. Raises `ConfigError` for a mask with unknown bits."""
    if not 0 <= mask <= full(len(players)):
        raise ConfigError(f"expected a mask below {1 << len(players)} for {len(players)} players, got {mask}")
    return tuple(name for index, name in enumerate(players) if mask >> index & 1)


def label(players: Sequence[str], mask: int) -> str:
    """The coalition as text, such as `a+b`; empty for nobody. A `+` or backslash inside a name is escaped."""
    return "+".join(_ESCAPE.sub(r"\\\1", name) for name in names_of(players, mask))


def parse_label(players: Sequence[str], text: str) -> int:
    """The mask that `label` wrote as `text`; names may come in any order. Raises `ConfigError` for unknown names."""
    return mask_of(players, (re.sub(r"\\(.)", r"\1", part) for part in _PART.findall(text)))


def full(n: int) -> int:
    """The mask of all n players."""
    return (1 << n) - 1


def all_masks(n: int) -> range:
    """All 2^n masks of n players, the empty one first, the full one last."""
    return range(1 << n)


def singles(n: int) -> tuple[int, ...]:
    """The n masks of one player each, in player order."""
    return tuple(1 << index for index in range(n))


def contains(mask: int, index: int) -> bool:
    """Whether player `index` is in the coalition."""
    return bool(mask >> index & 1)


def with_player(mask: int, index: int) -> int:
    """The coalition together with player `index`."""
    return mask | 1 << index


def without(mask: int, index: int) -> int:
    """The coalition without player `index`."""
    return mask & ~(1 << index)


def size(mask: int) -> int:
    """Number of players in the coalition."""
    return mask.bit_count()


def members(mask: int) -> tuple[int, ...]:
    """The indices of the players in the coalition, ascending."""
    return tuple(index for index in range(mask.bit_length()) if mask >> index & 1)
