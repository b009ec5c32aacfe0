"""Tests whether individual and compositional strength rank the members of a pool alike.

In: per-item matrices [m, n] over the same items and members: individual scores v({i}), a compositional value (Shapley),
and, if there, leave-one-out and the Shapley part after two predecessors. Out: a verdict from pairs of members, and
correlations with their reliabilities. The pool is fixed and items are the sampling unit. Left out on purpose: claims
about models in general, which need pools as the unit; and any reading of "not significant" as "not aligned".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from collabsim.coalitions.intervals import Intervals, intervals
from collabsim.coalitions.values import Floats
from collabsim.errors import ConfigError

ERROR_RATE = 0.05
MIN_MEMBERS = 4
MIN_RELIABILITY = 0.5

PairVerdict = Literal["concordant", "inverted", "undecided"]
RelationVerdict = Literal["aligned", "misaligned", "undecided"]


class Span(NamedTuple):
    """A difference between two members with its interval, in points of score."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class MemberPair:
    """Two members compared on both strengths, first minus second; intervals at Bonferroni level over the pairs."""

    first: int
    second: int
    individual: Span
    value: Span
    verdict: PairVerdict


@dataclass(frozen=True, slots=True)
class Correlation:
    """Correlation of the members' individual strengths with their values. None: these data do not support a number."""

    pearson: float | None
    spearman: float | None
    kendall: float | None
    corrected: float | None
    """Pearson's r without the noise of the items, clipped to [-1, 1]."""
    reliability_individual: float | None
    """Share of the variance between members that is signal, in [0, 1]."""
    reliability_value: float | None


@dataclass(frozen=True, slots=True)
class Relation:
    """One setting (a pool under a protocol on a task)."""

    verdict: RelationVerdict
    pairs: tuple[MemberPair, ...]
    correlations: Mapping[str, Correlation]
    """By value: `shapley`, and `leave_one_out`, `shapley_after_two` where given."""


def relation(
    individual: Floats,
    value: Floats,
    *,
    leave_one_out: Floats | None = None,
    shapley_after_two: Floats | None = None,
) -> Relation:
    """Verdict and correlations of one setting; all matrices are [m, n] over the same items and members.

    See `verdict_of` for the rule and `correlation` for the numbers. Raises `ConfigError` when shapes differ.
    """
    candidates = {"shapley": value, "leave_one_out": leave_one_out, "shapley_after_two": shapley_after_two}
    matrices = {name: matrix for name, matrix in candidates.items() if matrix is not None}
    for name, matrix in matrices.items():
        if matrix.ndim != 2 or matrix.shape != individual.shape:
            raise ConfigError(
                f"expected {name} and individual as [items, members] of one shape, "
                f"got {list(matrix.shape)} and {list(individual.shape)}"
            )
    verdict, pairs = verdict_of(individual, value)
    return Relation(verdict, pairs, {name: correlation(individual, matrix) for name, matrix in matrices.items()})


def verdict_of(individual: Floats, value: Floats) -> tuple[RelationVerdict, tuple[MemberPair, ...]]:
    """The verdict of a setting and its pairs, from [m, n] matrices.

    *Pairs*: concordant or inverted when both differences exclude 0 at Bonferroni level (0.05 / number of pairs), else
    undecided. A call needs both, so any wrong or groundless call in a study (a tied pair called either way, a pair
    called the wrong way round) has at most the 5% of the family.

    *Setting*: `misaligned` with an inverted pair. `aligned` when **every** pair has both differences excluding 0 at
    95% with equal signs. That is a statement about all pairs at once, so it needs no correction (intersection-union
    test, Berger 1982): a pool with a truly inverted pair passes in at most 5% of studies. "Some pair concordant, none
    found inverted" would not do: a real inversion that is too small to be found is then called aligned nearly always.
    Everything else is `undecided`, also a pool in which two members truly tie.

    With two members the exact phi_1 - phi_2 is v({1}) - v({2}): such a pair is never inverted.
    """
    pairs = list(combinations(range(individual.shape[1]), 2))
    if not pairs:
        return "undecided", ()
    first, second = np.array(pairs).T
    k = len(pairs)
    both = np.hstack([matrix[:, first] - matrix[:, second] for matrix in (individual, value)])
    levels = np.repeat([1 - ERROR_RATE / k, 1 - ERROR_RATE], 2 * k)
    differences = intervals(np.hstack([both, both]), confidence=levels)
    signs = _sign(differences).reshape(2, 2, k)  # level (strict, loose) x strength x pair
    calls, agree = signs.prod(axis=1)
    verdict: RelationVerdict = "undecided"
    if (calls < 0).any():
        verdict = "misaligned"
    elif (agree > 0).all():
        verdict = "aligned"
    names: dict[int, PairVerdict] = {1: "concordant", -1: "inverted", 0: "undecided"}
    spans = [(_span(differences, at), _span(differences, k + at)) for at in range(k)]
    return verdict, tuple(MemberPair(i, j, *spans[at], names[int(calls[at])]) for at, (i, j) in enumerate(pairs))


def correlation(individual: Floats, value: Floats) -> Correlation:
    """Correlations over members of the means of two [m, n] matrices.

    Reliability = signal share of the variance between members: (S2 - E) / S2, where E is the sum of the squared
    standard errors of the centred member means over n - 1, that is, what S2 would be by noise alone. The corrected r
    takes the noise out of both variances and out of the covariance (the two share items, so their errors correlate;
    Spearman 1904 has the classical form without that). All r are None for n < 4, for reliability < 0.5 of either side,
    and for a side without variance.
    """
    n = individual.shape[1]
    if n < 2 or len(individual) < 2:
        return Correlation(None, None, None, None, None, None)
    observed, noise = _between(individual, value)
    signal = observed - noise
    reliability = [_share(signal[k, k], observed[k, k]) for k in (0, 1)]
    if n < MIN_MEMBERS or any(share is None or share < MIN_RELIABILITY for share in reliability):
        return Correlation(None, None, None, None, *reliability)
    from scipy import stats

    x, y = individual.mean(axis=0), value.mean(axis=0)
    corrected = float(np.clip(signal[0, 1] / np.sqrt(signal[0, 0] * signal[1, 1]), -1, 1))
    return Correlation(
        float(stats.pearsonr(x, y).statistic),
        float(stats.spearmanr(x, y).statistic),
        float(stats.kendalltau(x, y).statistic),
        corrected,
        *reliability,
    )


def _between(individual: Floats, value: Floats) -> tuple[Floats, Floats]:
    """Covariance of the two strengths between members, and its expectation from item noise alone, both [2, 2]."""
    m, n = individual.shape
    centred = [matrix - matrix.mean(axis=1, keepdims=True) for matrix in (individual, value)]
    means = [matrix.mean(axis=0) for matrix in centred]
    errors = [matrix - mean for matrix, mean in zip(centred, means, strict=True)]
    observed = np.array([[(a * b).sum() for b in means] for a in means]) / (n - 1)
    noise = np.array([[(a * b).sum() for b in errors] for a in errors]) / (m * (m - 1) * (n - 1))
    return observed, noise


def _share(signal: float, observed: float) -> float | None:
    return None if observed < 1e-15 else float(np.clip(signal / observed, 0, 1))


def _sign(difference: Intervals) -> Floats:
    """+1, -1, or 0 where the interval holds 0, per pair."""
    return np.where(difference.low > 0, 1.0, np.where(difference.high < 0, -1.0, 0.0))


def _span(difference: Intervals, column: int) -> Span:
    return Span(*(float(part[column]) for part in (difference.value, difference.low, difference.high)))
