"""Standard errors and intervals of means over items.

In: values per item, [m] or [m, k] (a Shapley value, a marginal, a score, a difference). Out: estimates with intervals
for the **population of items**: items are the sampling unit, so they also carry the noise of one draw per call and of
one order per item. Left out on purpose: intervals for these very items, which need two orders an item.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collabsim.coalitions.values import Floats
from collabsim.errors import ConfigError, MissingOutcomesError
from collabsim.seeds import derive_seed

RARE_BELOW = 15
"""With fewer informative items than this the t interval of a mean is not to be trusted."""
CARRIED_BELOW = 5.0
"""The t interval is not to be trusted either when fewer items than this carry the spread."""
TOLERANCE = 1e-9
"""Values per item closer than this are equal: scores are sums of a few fractions, the rest is rounding."""
MAX_T_DRAWS = 20_000


class Interval(NamedTuple):
    """The ends of a 95% interval."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over items with its uncertainty, in points of score."""

    value: float
    """The plain mean."""
    se: float
    """Standard error behind the interval: the conservative one when `rare`."""
    ci95: tuple[float, float]
    n_items: int
    nonzero: int
    """Number of informative items: see `intervals`."""
    rare: bool
    """Fewer than 15 informative items, or a spread carried by fewer than 5: the interval is the conservative one."""

    @property
    def interval(self) -> Interval:
        """`ci95` by name: `low` and `high`."""
        return Interval(*self.ci95)


class Intervals(NamedTuple):
    """`Estimate` for k columns at once; every field is an array [k]."""

    value: Floats
    se: Floats
    low: Floats
    high: Floats
    nonzero: NDArray[np.int64]
    rare: NDArray[np.bool_]


def intervals(
    values: Floats,
    *,
    confidence: float | Floats = 0.95,
    marginals: Floats | None = None,
    support: tuple[float, float] = (-1.0, 1.0),
) -> Intervals:
    """Means over items of `values` [m, k] with t intervals at `confidence`, one level or one per column.

    A column is **rare** when fewer than 15 items are informative. An item is informative when its value is not the
    commonest one: a nonzero marginal where most are zero, a failure where nearly all succeed (a Shapley value per item
    is 1/n and not 0 when everybody is right, so counting nonzero values alone would miss that). Where `marginals`
    [m, k] are given (for values from orders: `Chains.marginals(after=1)`), the item must also have a nonzero one.
    A column is rare as well when a handful of items carries its spread: (sum d^2)^2 / sum d^4 < 5, d = value - mean.

    Rare columns get a conservative interval: the t interval after adding one pseudo-item at each end of `support`
    (-1 and +1 for marginals; 0 and 1 for scores), the idea of Agresti and Coull (1998). It also covers constant
    columns and a single item.

    Known limit: with near-perfect pools (each member right on 98% of the items or more) of 8 or more members, exact
    values depend on failures that a sample may not contain, and coverage can fall to 0.9 with 15 to 30 informative items.

    Raises `MissingOutcomesError` when there is no item or a value is not finite, `ConfigError` for a confidence outside
    (0, 1).
    """
    m = len(values)
    if m == 0 or not np.isfinite(values).all():
        raise MissingOutcomesError(f"expected a finite value for each of at least one item, got {m} item(s)")
    mean_C = values.mean(axis=0)
    informative_C = m - _commonest(values)
    if marginals is not None:
        informative_C = np.minimum(informative_C, (np.abs(marginals) > TOLERANCE).sum(axis=0))
    squares_C = ((values - mean_C) ** 2).sum(axis=0)
    fourths_C = ((values - mean_C) ** 4).sum(axis=0)
    rare_C = (informative_C < RARE_BELOW) | (squares_C**2 < CARRIED_BELOW * fourths_C)
    ends = np.array(support)[:, None]
    padded_mean_C = (values.sum(axis=0) + ends.sum(axis=0)) / (m + 2)
    padded_squares_C = ((values - padded_mean_C) ** 2).sum(axis=0) + ((ends - padded_mean_C) ** 2).sum(axis=0)
    count_C = np.where(rare_C, m + 2, max(m, 2))
    se_C = np.sqrt(np.where(rare_C, padded_squares_C, squares_C) / (count_C * (count_C - 1)))
    half_C = _t_quantile(confidence, count_C - 1) * se_C
    centre_C = np.where(rare_C, padded_mean_C, mean_C)
    return Intervals(mean_C, se_C, centre_C - half_C, centre_C + half_C, informative_C.astype(np.int64), rare_C)


def estimates(
    values: Floats, *, marginals: Floats | None = None, support: tuple[float, float] = (-1.0, 1.0)
) -> tuple[Estimate, ...]:
    """One `Estimate` per column of `values` [m, k], with 95% intervals; see `intervals`."""
    columns = intervals(values, marginals=marginals, support=support)
    return tuple(_estimate(len(values), row) for row in zip(*columns, strict=True))


def mean_interval(
    values: Floats, *, marginals: Floats | None = None, support: tuple[float, float] = (-1.0, 1.0)
) -> Estimate:
    """The mean over items of `values` [m] with its 95% interval; see `intervals`."""
    columns = None if marginals is None else marginals[:, None]
    return estimates(values[:, None], marginals=columns, support=support)[0]


@dataclass(frozen=True, slots=True)
class PairDifference:
    """First member minus second, with an interval that holds for all pairs at once."""

    first: int
    second: int
    estimate: Estimate
    """`ci95` is simultaneous: all pairs are covered together in 95% of repeats."""

    @property
    def differs(self) -> bool:
        """Whether the two members differ."""
        low, high = self.estimate.ci95
        return low > 0 or high < 0


def pairwise_differences(values: Floats, *, seed: int = 0) -> tuple[PairDifference, ...]:
    """Differences between members: all pairs of columns of `values` [m, n] with simultaneous 95% intervals.

    The width is the 95% quantile of max |t| over the pairs under the correlations of the members' means (single-step
    max-t, Westfall and Young 1993), from seeded draws of a multivariate t. A rare pair (see `intervals`) has no
    correlation to rely on and gets the conservative interval at Bonferroni level. Pairs in order of (first, second).
    """
    pairs = list(combinations(range(values.shape[1]), 2))
    if not pairs:
        return ()
    first, second = np.array(pairs).T
    differences = values[:, first] - values[:, second]
    wide = intervals(differences, confidence=1 - 0.05 / len(pairs))
    half = _max_t(values, first, second, wide, seed) * wide.se
    low = np.where(wide.rare, wide.low, wide.value - half)
    high = np.where(wide.rare, wide.high, wide.value + half)
    rows = zip(*wide._replace(low=low, high=high), strict=True)
    return tuple(PairDifference(i, j, _estimate(len(values), row)) for (i, j), row in zip(pairs, rows, strict=True))


def _max_t(values: Floats, first: Any, second: Any, pairs: Intervals, seed: int) -> float:
    """The 95% quantile of max |t| over the pairs that are not rare; 0 when there is none."""
    usable = ~pairs.rare
    m, n = values.shape
    if not usable.any():
        return 0.0
    spread, axes = np.linalg.eigh(np.cov(values, rowvar=False) / m)
    rng = np.random.default_rng(derive_seed("max-t", seed, m, n))
    means = rng.standard_normal((MAX_T_DRAWS, n)) * np.sqrt(np.clip(spread, 0, None)) @ axes.T
    scale = np.sqrt(rng.chisquare(m - 1, MAX_T_DRAWS) / (m - 1))
    t = np.abs(means[:, first[usable]] - means[:, second[usable]]) / pairs.se[usable] / scale[:, None]
    return float(np.quantile(t.max(axis=1), 0.95))


def _commonest(values: Floats) -> NDArray[np.int64]:
    """Number of items that share the commonest value, per column of [m, k]."""
    ranked = np.sort(values, axis=0)
    rows = np.arange(len(values))[:, None]
    starts = np.vstack([np.ones((1, values.shape[1]), bool), np.diff(ranked, axis=0) > TOLERANCE])
    run = rows - np.maximum.accumulate(np.where(starts, rows, 0), axis=0) + 1
    longest: NDArray[np.int64] = run.max(axis=0)
    return longest


def _t_quantile(confidence: float | Floats, df: NDArray[np.int64]) -> Floats:
    """Two-sided quantile of Student's t."""
    from scipy.special import stdtrit

    level = np.asarray(confidence)
    if ((level <= 0) | (level >= 1)).any():
        raise ConfigError(f"expected a confidence between 0 and 1, got {confidence}")
    quantile: Floats = stdtrit(df, 0.5 + level / 2)
    return quantile


def _estimate(m: int, row: tuple[Any, ...]) -> Estimate:
    value, se, low, high, nonzero, rare = row
    return Estimate(float(value), float(se), (float(low), float(high)), m, int(nonzero), bool(rare))
