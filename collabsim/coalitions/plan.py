"""The plan of a sweep: which coalitions are run on which items, for each method of estimating values.

In: a method, the players, the item ids, a seed. Out: an explicit plan, made before anything runs, so that its size can be
printed, a sweep can be resumed, and nothing in it depends on outcomes. Pure. Left out on purpose: how values are computed
from it (`values`, `valuation`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from collabsim.coalitions import masks
from collabsim.coalitions.approximators import PREFIX, item_seed
from collabsim.coalitions.approximators import plan as approximator_plan
from collabsim.coalitions.orders import item_orders, needed_masks
from collabsim.errors import ConfigError, nearest

AUTO_EXACT_PLAYERS = 6
MOST_EXACT_PLAYERS = 16
METHODS = ("auto", "exact", "loo", "permutation")


@dataclass(frozen=True, slots=True)
class Plan:
    """Coalitions (bitmasks) to be evaluated on each item."""

    method: str
    """`exact`, `loo`, `permutation` or `shapiq:NAME`; never `auto`."""
    n_players: int
    coalitions: Mapping[str, Sequence[int]] = field(repr=False)
    """Item id to its coalitions, without repeats."""
    orders: Mapping[str, tuple[int, ...]] = field(default_factory=dict, repr=False)
    """Item id to its order of players; only for `permutation`."""
    budget: int = 0
    """Coalitions per item that a `shapiq:` method asks for."""
    seed: int = 0

    def __len__(self) -> int:
        return sum(len(coalitions) for coalitions in self.coalitions.values())

    def __iter__(self) -> Iterator[tuple[str, int]]:
        """All (item id, mask), item by item: what coalitions of one item share is then still in memory."""
        return ((item, mask) for item, coalitions in self.coalitions.items() for mask in coalitions)

    def common_masks(self) -> list[int]:
        """Coalitions that every item is evaluated under, small ones first."""
        each = [set(coalitions) for coalitions in self.coalitions.values()]
        return sorted(set.intersection(*each), key=lambda mask: (mask.bit_count(), mask)) if each else []


def make_plan(
    method: str, n_players: int, item_ids: Sequence[str], *, seed: int = 0, budget: int | None = None
) -> Plan:
    """The plan of a method. `auto` is `exact` for up to 6 players and `permutation` above.

    Raises `ConfigError` for an unknown method, `exact` with more than 16 players, or a budget where none is used.
    """
    if method == "auto":
        method = "exact" if n_players <= AUTO_EXACT_PLAYERS else "permutation"
    if method.startswith(PREFIX):
        return _shapiq_plan(method, n_players, item_ids, seed, budget or default_budget(n_players))
    if method not in METHODS:
        raise ConfigError(
            f"unknown method {method!r}{nearest(method, METHODS)}; known are {', '.join(METHODS)} and {PREFIX}NAME"
        )
    if budget is not None:
        raise ConfigError(f"sweep.budget is for {PREFIX}NAME methods; {method!r} has a fixed number of coalitions")
    orders = {}
    if method == "permutation":
        orders = item_orders(item_ids, n_players, seed)
        coalitions = {item: needed_masks(orders[item]) for item in item_ids}
    else:
        same = _every_mask(n_players) if method == "exact" else _all_but_one(n_players)
        coalitions = dict.fromkeys(item_ids, same)
    return Plan(method, n_players, coalitions, orders=orders, seed=seed)


def default_budget(n_players: int) -> int:
    """Coalitions per item of a `shapiq:` method that was given none: four per player, and fewer than all."""
    return min(4 * n_players, (1 << n_players) - 1)


def _every_mask(n_players: int) -> tuple[int, ...]:
    if n_players > MOST_EXACT_PLAYERS:
        raise ConfigError(
            f"exact needs 2^{n_players} coalitions on every item, more than 2^{MOST_EXACT_PLAYERS}; "
            "use `method: permutation`"
        )
    return tuple(masks.all_masks(n_players))


def _all_but_one(n_players: int) -> tuple[int, ...]:
    """The empty coalition, the full one, and each that lacks one player."""
    everyone = masks.full(n_players)
    return tuple(sorted({0, everyone, *(masks.without(everyone, player) for player in range(n_players))}))


def _shapiq_plan(method: str, n_players: int, item_ids: Sequence[str], seed: int, budget: int) -> Plan:
    coalitions = {item: approximator_plan(method, n_players, budget, item_seed(seed, item)) for item in item_ids}
    return Plan(method, n_players, coalitions, budget=budget, seed=seed)
