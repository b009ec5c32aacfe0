"""Resolves names of players to nodes and seats of an application, and separates their rules for abstaining.

In: names and rules as they were written, the application's nodes, the pool. Out: a `Player` for each name, and the rules of
nodes and of seats apart. Left out on purpose: whether a rule fits its node (`absence`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from collabsim.errors import ConfigError, nearest
from collabsim.foreign.toggling import SEPARATOR
from collabsim.pool import Pool


class Player(NamedTuple):
    """A node or a seat that coalitions switch."""

    kind: Literal["node", "seat"]
    target: str
    """Path of the node, or name of the seat."""


def _target(name: str, paths: Sequence[str], pool: Pool) -> Player:
    """The node or the seat that a name means; `node:` and `seat:` before it tell them apart."""
    kind, _, rest = name.partition(":")
    if kind in ("node", "seat") and rest:
        names: Sequence[str] = paths if kind == "node" else pool.seats
        if rest in names:
            return Player("node" if kind == "node" else "seat", rest)
        raise ConfigError(f"no {kind} {rest!r}{nearest(rest, names)}; the application has {list(names)}")
    if name in paths and name in pool:
        raise ConfigError(f"{name!r} is a node and a seat; write 'node:{name}' or 'seat:{name}'")
    if name in paths or name in pool:
        return Player("node" if name in paths else "seat", name)
    raise ConfigError(
        f"no node and no seat {name!r}{nearest(name, [*paths, *pool])}; the nodes are {list(paths)}, "
        f"the seats {list(pool)}"
    )


def switches_of(players: Sequence[str] | None, paths: Sequence[str], pool: Pool) -> dict[str, Player]:
    """The players by name; None means every node of the application itself.

    Raises `ConfigError` for unknown or ambiguous names, for repeats, and for a graph beside its own parts.
    """
    if isinstance(players, str) or (players is not None and not all(isinstance(name, str) for name in players)):
        raise ConfigError(f"players: expected a list of names, got {players!r}")
    if players is None:
        return {path: Player("node", path) for path in paths if SEPARATOR not in path}
    switches = {name: _target(name, paths, pool) for name in players}
    if not switches or len(set(switches.values())) < len(players):
        raise ConfigError(f"players: expected distinct names, and at least one, got {list(players)}")
    inner = [p.target for p in switches.values() if p.kind == "node"]
    for path in inner:
        outer = next((other for other in inner if path.startswith(other + SEPARATOR)), None)
        if outer is not None:
            raise ConfigError(f"players: {path!r} is a part of {outer!r}; name the whole or its parts, not both")
    return switches


def rules_of(absent: Mapping[str, Any], paths: Sequence[str], pool: Pool) -> tuple[dict[str, Any], dict[str, Any]]:
    """`absent` as rules of nodes and replies in the place of seats. Raises `ConfigError` for what is neither."""
    nodes: dict[str, Any] = {}
    seats: dict[str, Any] = {}
    for name, rule in absent.items():
        player = _target(name, paths, pool)
        if player.kind == "node":
            nodes[player.target] = rule
        elif rule == "skip":
            continue  # the default: the node that asks it abstains
        elif isinstance(rule, str) or callable(rule) or getattr(rule, "type", None) == "ai":
            seats[player.target] = rule
        else:
            raise ConfigError(
                f"absent[{name!r}]: expected 'skip', or what is said in the seat's place (a text, an AIMessage, a "
                f"function of the messages), got {rule!r}"
            )
    return nodes, seats
