"""Values of players from outcomes by coalition: Shapley, Banzhaf, leave-one-out, individual, pairwise interaction.

In: outcomes per item, either dense, `outcomes[item, mask]` of shape [m, 2**n], or only the columns that are needed, a
mapping from mask to [m]. NaN is a missing outcome and always an error, never a zero. Out: values **per item**, [m, n]:
all of these are linear in v, so the mean over items is the value of the mean game, and items stay the sampling unit of
`intervals.py`. Left out on purpose: estimation from a part of the coalitions (`orders.py`, `approximators.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb

import numpy as np
from numpy.typing import NDArray

from collabsim.coalitions import masks
from collabsim.errors import ConfigError, MissingOutcomesError

Floats = NDArray[np.float64]
Columns = Mapping[int, Floats]
"""Outcomes per item, [m], by the mask of the coalition."""

SHOWN = 5


def shapley(outcomes: Floats, players: Sequence[str] | None = None) -> Floats:
    """Exact Shapley values per item.

    phi_i = sum over S without i of |S|! (n-|S|-1)! / n! * (v(S+i) - v(S))  (Shapley 1953).

    `outcomes` is [m, 2**n]; returns [m, n], in points of score; each row sums to v(N) - v(empty). `players` only names
    the coalitions in errors. Raises `MissingOutcomesError` for NaN and `ConfigError` for a wrong shape.
    """
    n = _n_players(outcomes, players)
    return _weighted_marginals(outcomes, n, np.array([1 / (n * comb(n - 1, size)) for size in range(n)]))


def shapley_after_two(outcomes: Floats, players: Sequence[str] | None = None) -> Floats:
    """The part of the Shapley value that a player earns after at least two others: [m, 2**n] to [m, n].

    The same sum as `shapley` over |S| >= 2 only, so v({i}), which is individual strength itself, plays no part in it.
    Zeros for n < 3. Raises as `shapley` does.
    """
    n = _n_players(outcomes, players)
    return _weighted_marginals(
        outcomes, n, np.array([1 / (n * comb(n - 1, size)) if size >= 2 else 0.0 for size in range(n)])
    )


def banzhaf(outcomes: Floats, players: Sequence[str] | None = None) -> Floats:
    """Banzhaf values per item: the plain mean of all 2**(n-1) marginals (Banzhaf 1965). They need not sum to v(N).

    [m, 2**n] to [m, n]. Raises as `shapley` does.
    """
    n = _n_players(outcomes, players)
    return _weighted_marginals(outcomes, n, np.full(n, 0.5 ** max(n - 1, 0)))


def interaction(outcomes: Floats, players: Sequence[str] | None = None) -> Floats:
    """Pairwise Shapley interaction index per item (Grabisch and Roubens 1999): [m, 2**n] to [m, n, n].

    I_ij = sum over S without i, j of |S|! (n-|S|-2)! / (n-1)! * (v(S+ij) - v(S+i) - v(S+j) + v(S)): positive where two
    players complete each other, negative where one replaces the other. Symmetric, zeros on the diagonal. Raises as
    `shapley` does.
    """
    n = _n_players(outcomes, players)
    interaction_MNN = np.zeros((len(outcomes), n, n))
    weight_of_size = np.array([1 / ((n - 1) * comb(n - 2, size)) for size in range(n - 1)])
    sizes_1H = _sizes(max(n - 1, 0))[None]
    for i in range(n):
        marginals_MH = _difference(outcomes, i)  # a game of the other players, with bit i squeezed out
        for j in range(i + 1, n):
            weights = weight_of_size[_without_bit(sizes_1H, j - 1)[0]]
            interaction_MNN[:, i, j] = interaction_MNN[:, j, i] = _difference(marginals_MH, j - 1) @ weights
    return interaction_MNN


def individual(outcomes: Columns | Floats, n: int, players: Sequence[str] | None = None) -> Floats:
    """v({i}) per item and player, [m, n]: a member that is alone answers alone. Needs the n single coalitions.

    `outcomes` maps masks to [m], or is dense. Raises `MissingOutcomesError` for coalitions that are not there.
    """
    return _columns(outcomes, masks.singles(n), n, players)


def leave_one_out(outcomes: Columns | Floats, n: int, players: Sequence[str] | None = None) -> Floats:
    """v(N) - v(N without i) per item and player, [m, n]. Needs the full coalition and the n that lack one player.

    Zero for every one of several redundant players, and no sum is promised. Raises as `individual` does.
    """
    whole = masks.full(n)
    outcomes_MC = _columns(outcomes, (whole, *(masks.without(whole, i) for i in range(n))), n, players)
    return outcomes_MC[:, :1] - outcomes_MC[:, 1:]


def leave_one_out_split(outcomes: Columns | Floats, n: int, players: Sequence[str] | None = None) -> Floats:
    """Leave-one-out plus an equal share of the remainder, so that rows sum to v(N) - v(empty): [m, n].

    The ENSC value (equal split of the non-separable contribution, Moulin 1985). As an estimate of the Shapley value it
    is biased, yet it can have less error on homogeneous pools with few items. Also needs the empty coalition.
    """
    raw_MN = leave_one_out(outcomes, n, players)
    gain_M = _gain(outcomes, n, players)
    split_MN: Floats = raw_MN + (gain_M - raw_MN.sum(axis=1))[:, None] / max(n, 1)
    return split_MN


def efficiency_gap(values: Floats, outcomes: Columns | Floats, players: Sequence[str] | None = None) -> float:
    """Sum of the mean values minus (v(N) - v(empty)), in points of score.

    About 1e-16 for exact Shapley values; sampling noise around 0 for estimates; no promise for other values. `values`
    is [m, n]; needs the empty and the full coalition of the same items.
    """
    gain_M = _gain(outcomes, values.shape[1], players)
    return float((values.sum(axis=1) - gain_M).mean())


def _gain(outcomes: Columns | Floats, n: int, players: Sequence[str] | None) -> Floats:
    """v(N) - v(empty) per item, [m]."""
    outcomes_MC = _columns(outcomes, (0, masks.full(n)), n, players)
    gain_M: Floats = outcomes_MC[:, 1] - outcomes_MC[:, 0]
    return gain_M


def _weighted_marginals(outcomes: Floats, n: int, weight_of_size: Floats) -> Floats:
    """Sum over S without i of weight[|S|] * (v(S+i) - v(S)), [m, n].

    Differences are taken before the weights, so a player that never matters gets an exact 0.
    """
    values_MN = np.zeros((len(outcomes), n))
    sizes_1S = _sizes(n)[None]
    for i in range(n):
        values_MN[:, i] = _difference(outcomes, i) @ weight_of_size[_without_bit(sizes_1S, i)[0]]
    return values_MN


def _difference(outcomes: Floats, i: int) -> Floats:
    """v(S+i) - v(S) for all S without i, [m, 2**(n-1)], S in the order of its mask with bit i squeezed out."""
    halves = outcomes.reshape(len(outcomes), -1, 2, 1 << i)
    difference: Floats = (halves[:, :, 1] - halves[:, :, 0]).reshape(len(outcomes), outcomes.shape[1] // 2)
    return difference


def _without_bit(table: NDArray[np.int64], i: int) -> NDArray[np.int64]:
    """The entries of [rows, 2**n] whose mask lacks bit i, [rows, 2**(n-1)]."""
    return table.reshape(len(table), -1, 2, 1 << i)[:, :, 0].reshape(len(table), -1)


def _sizes(n: int) -> NDArray[np.int64]:
    """|S| of all masks, [2**n]."""
    return np.array([masks.size(mask) for mask in masks.all_masks(n)], dtype=np.int64)


def _n_players(outcomes: Floats, players: Sequence[str] | None) -> int:
    if outcomes.ndim != 2 or outcomes.shape[1].bit_count() != 1:
        raise ConfigError(f"expected outcomes of shape [items, 2**players], got {list(outcomes.shape)}")
    n = int(outcomes.shape[1]).bit_length() - 1
    missing = np.flatnonzero(np.isnan(outcomes).any(axis=0))
    if len(missing):
        raise _missing([int(mask) for mask in missing], n, players)
    return n


def _columns(outcomes: Columns | Floats, wanted: Sequence[int], n: int, players: Sequence[str] | None) -> Floats:
    """The columns of the wanted masks side by side, [m, len(wanted)]."""
    table = dict(enumerate(outcomes.T)) if isinstance(outcomes, np.ndarray) else outcomes
    missing = [mask for mask in wanted if mask not in table or np.isnan(table[mask]).any()]
    if missing:
        raise _missing(missing, n, players)
    if not wanted:
        return np.zeros((len(next(iter(table.values()))) if table else 0, 0))
    return np.stack([np.asarray(table[mask], dtype=np.float64) for mask in wanted], axis=1)


def _missing(missing: list[int], n: int, players: Sequence[str] | None) -> MissingOutcomesError:
    names = tuple(players) if players is not None else tuple(str(i) for i in range(n))
    shown = ", ".join(masks.label(names, mask) or "(empty)" for mask in missing[:SHOWN])
    more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
    return MissingOutcomesError(
        f"expected an outcome of every item for {len(missing)} coalition(s) that lack some: {shown}{more}; "
        "resume the sweep, or drop the items with missing outcomes everywhere"
    )
