"""Shapley values from one random order of the players per item.

In: item ids and a seed; outcomes of the coalitions along each item's order, and of every player alone. Out: orders,
the masks they need, and per-item estimates [m, n] whose mean over items is unbiased for the Shapley value at n+1
evaluations an item (the idea of one order per sample is SAGE's, Covert et al., arXiv 2004.00668). Left out on purpose:
further orders per item, which a caller gets with another seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collabsim.coalitions import masks
from collabsim.coalitions.values import Floats
from collabsim.errors import ConfigError, MissingOutcomesError
from collabsim.seeds import derive_seed, digest

Order = tuple[int, ...]
"""Players by index, in the order in which they join."""
Lookup = Callable[[str, int], float | None]
"""Outcome of (item id, mask); None or NaN when it is missing."""


def item_orders(item_ids: Iterable[str], n: int, seed: int) -> dict[str, Order]:
    """One uniformly random order of the n players for each item, as Latin squares across items.

    Items are sorted by a content seed and cut into blocks of n. A block is a cyclic Latin square whose symbols are
    permuted uniformly: every single order is uniform over all n!, and in a full block every player takes every place
    once, which balances the places and lowers the variance. Depends on the set of ids, n and the seed, never on the
    order in which the ids come; another set of items gives other orders. Keys keep the order of `item_ids`.

    Raises `ConfigError` for an id that appears twice.
    """
    ids = list(item_ids)
    ranked = sorted(ids, key=lambda item_id: (derive_seed("order of items", seed, item_id), item_id))
    if len(set(ids)) < len(ids):
        raise ConfigError(f"expected distinct item ids, got {len(ids) - len(set(ids))} repeated; remove the duplicates")
    orders: dict[str, Order] = {}
    for start in range(0, len(ranked), max(n, 1)):
        block = ranked[start : start + max(n, 1)]
        state = derive_seed("latin square", seed, n, digest(block))
        symbols = [int(player) for player in np.random.default_rng(state).permutation(n)]
        for shift, item_id in enumerate(block):
            orders[item_id] = tuple(symbols[shift:] + symbols[:shift])
    return {item_id: orders[item_id] for item_id in ids}


def chain_masks(order: Order) -> tuple[int, ...]:
    """The n+1 masks along an order, from the empty coalition to the full one."""
    chain = [0]
    for player in order:
        chain.append(masks.with_player(chain[-1], player))
    return tuple(chain)


def needed_masks(order: Order) -> tuple[int, ...]:
    """All masks that an item with this order needs, ascending: its chain, and every player alone."""
    return tuple(sorted({*chain_masks(order), *masks.singles(len(order))}))


@dataclass(frozen=True, slots=True, eq=False)
class Chains:
    """Outcomes along each item's order, with those of every player alone: what all estimates from orders read."""

    orders: NDArray[np.int64]
    """[m, n]: the player that joins at each place."""
    along: Floats
    """[m, n+1]: v of the players before place k; column 0 is the empty coalition, column n the full one."""
    alone: Floats
    """[m, n]: v({i}) by player."""

    def shapley(self) -> Floats:
        """Per-item Shapley estimates [m, n], the first place known without noise.

        phi_i = (v({i}) - v(empty)) / n + 1[i is not first] * (marginal of i): the player is first with probability
        1/n, and what it brings then is on the table for every item. Unbiased; a row need not sum to v(N) - v(empty).
        """
        n = self.orders.shape[1]
        first_MN: Floats = (self.alone - self.along[:, :1]) / max(n, 1)
        return first_MN + self.marginals(after=1)

    def marginals(self, after: int = 0) -> Floats:
        """The marginal of each player in its item's order [m, n], set to 0 where fewer than `after` went before.

        `after=1` is what `intervals` counts as marginals of a member; the mean of `after=2` is unbiased for
        `values.shapley_after_two`.
        """
        by_place_MN = np.diff(self.along, axis=1)
        by_place_MN[:, :after] = 0.0
        by_player_MN = np.zeros_like(by_place_MN)
        np.put_along_axis(by_player_MN, self.orders, by_place_MN, axis=1)
        return by_player_MN


def evaluate_orders(orders: Mapping[str, Order], lookup: Lookup) -> Chains:
    """Reads what `needed_masks` names from `lookup`, items in the order of `orders`.

    Raises `MissingOutcomesError` when an outcome is missing, and `ConfigError` when the orders differ in length.
    """
    lengths = {len(order) for order in orders.values()}
    if len(lengths) > 1:
        raise ConfigError(f"expected orders of one length, got lengths {sorted(lengths)}")
    n = lengths.pop() if lengths else 0
    missing = 0

    def outcome(item_id: str, mask: int) -> float:
        nonlocal missing
        value = lookup(item_id, mask)
        if value is None or value != value:
            missing += 1
            return np.nan
        return value

    along = [[outcome(item_id, mask) for mask in chain_masks(order)] for item_id, order in orders.items()]
    alone = [[outcome(item_id, mask) for mask in masks.singles(n)] for item_id in orders]
    if missing:
        raise MissingOutcomesError(
            f"expected an outcome for every coalition of the {len(orders)} orders, {missing} are missing; "
            "resume the sweep, or drop the items with missing outcomes everywhere"
        )
    m = len(orders)
    return Chains(
        np.array(list(orders.values()), dtype=np.int64).reshape(m, n),
        np.array(along, dtype=np.float64).reshape(m, n + 1),
        np.array(alone, dtype=np.float64).reshape(m, n),
    )


def permutation_values(orders: Mapping[str, Order], lookup: Lookup) -> Floats:
    """Per-item Shapley estimates [m, n] from one order an item; see `Chains.shapley`. Raises as `evaluate_orders`."""
    return evaluate_orders(orders, lookup).shapley()
