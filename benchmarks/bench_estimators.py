"""How close each estimator comes to the exact Shapley value, and how many model calls it takes.

The game is a whole table of simulated outcomes, so that the exact value for these very items is known. Repeats draw
new coalitions on the same items: the error is the estimator's own. The error of having these items and not others,
which no estimator can undo, stands beside it. Calls are generations: what the store already holds is not called again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from statistics import mean
from typing import NamedTuple

import numpy as np
from games import Floats, debate_game, vote_game
from recording import record

from collabsim.coalitions import approximators, masks, values
from collabsim.coalitions.orders import item_orders, needed_masks, permutation_values

PLAYERS, ITEMS, REPEATS = 8, 300, 20
SKILLS = np.linspace(-1, 1.5, PLAYERS)
CONFORMITY = np.linspace(0.6, 0.1, PLAYERS)
KERNEL = "shapiq:KernelSHAP"
IDS = [f"item {k}" for k in range(ITEMS)]


class Found(NamedTuple):
    """What one estimator says in one repeat."""

    values: Floats
    """[players]: estimates of the Shapley values."""
    masks: list[Iterable[int]]
    """Coalitions that were evaluated, item by item."""


def leave_one_out(table: Floats, _repeat: int, *, split: bool) -> Found:
    whole = masks.full(PLAYERS)
    asked = [0, whole, *(masks.without(whole, k) for k in range(PLAYERS))]
    per_item = (values.leave_one_out_split if split else values.leave_one_out)(table, PLAYERS)
    return Found(per_item.mean(axis=0), [asked] * ITEMS)


def permutation(table: Floats, repeat: int, *, orders: int) -> Found:
    """The mean of estimates from `orders` independent orders an item."""
    row = {item: k for k, item in enumerate(IDS)}
    estimates = []
    asked: list[set[int]] = [set() for _ in IDS]
    for k in range(orders):
        drawn = item_orders(IDS, PLAYERS, seed=orders * repeat + k)
        estimates.append(permutation_values(drawn, lambda item, mask: table[row[item], mask]).mean(axis=0))
        for item, union in zip(IDS, asked, strict=True):
            union.update(needed_masks(drawn[item]))
    return Found(np.mean(estimates, axis=0), list(asked))


def kernel_shap(table: Floats, repeat: int, *, budget: int) -> Found:
    seeds = [approximators.item_seed(repeat, item) for item in IDS]
    per_item = [
        approximators.values(KERNEL, PLAYERS, budget, seed, lambda mask, k=k: table[k, mask])
        for k, seed in enumerate(seeds)
    ]
    plans = [approximators.plan(KERNEL, PLAYERS, budget, seed) for seed in seeds]
    return Found(np.mean(per_item, axis=0), plans)


ESTIMATORS: dict[str, Callable[[Floats, int], Found]] = {
    "leave-one-out": partial(leave_one_out, split=False),
    "leave-one-out, rest split": partial(leave_one_out, split=True),
    "permutation, one order an item": partial(permutation, orders=1),
    "permutation, two orders an item": partial(permutation, orders=2),
    f"{KERNEL}, budget {3 * PLAYERS}": partial(kernel_shap, budget=3 * PLAYERS),
    f"{KERNEL}, budget {4 * PLAYERS}": partial(kernel_shap, budget=4 * PLAYERS),
}


def vote_calls(_asked: Iterable[int]) -> int:
    """One opening answer for each member, whatever the coalitions."""
    return PLAYERS


def debate_calls(asked: Iterable[int]) -> int:
    """The opening answers, and a second one for each member of each coalition of two or more."""
    return PLAYERS + sum(size for mask in asked if (size := masks.size(mask)) > 1)


GAMES = {
    "vote": (vote_game(SKILLS, ITEMS, seed=1), vote_calls),
    "debate": (debate_game(SKILLS, CONFORMITY, ITEMS, seed=2), debate_calls),
}


def measured(game: str, name: str) -> dict[str, float]:
    """RMSE and bias against exact over repeats and players, evaluations and calls per item."""
    table, calls = GAMES[game]
    exact = values.shapley(table).mean(axis=0)
    found = [ESTIMATORS[name](table, repeat) for repeat in range(REPEATS)]
    errors = np.stack([entry.values for entry in found]) - exact
    return {
        "evaluations": mean(len({*asked} - {0}) for entry in found for asked in entry.masks),
        "calls": mean(calls(asked) for entry in found for asked in entry.masks),
        "rmse": float(np.sqrt((errors**2).mean())),
        "bias": float(np.sqrt((errors.mean(axis=0) ** 2).mean())),
    }


def item_error(game: str) -> float:
    """Standard error of the exact values from having these items: root mean square over players."""
    per_item = values.shapley(GAMES[game][0])
    return float(np.sqrt((per_item.var(axis=0, ddof=1) / ITEMS).mean()))


def test_estimators(benchmark):
    cells = [(game, name) for game in GAMES for name in ESTIMATORS]
    found = benchmark.pedantic(lambda: {cell: measured(*cell) for cell in cells}, rounds=1)
    rows = [
        (game, name, f"{m['evaluations']:.1f}", f"{m['calls']:.1f}", f"{m['rmse']:.4f}", f"{m['bias']:.4f}")
        for (game, name), m in found.items()
    ]
    errors = ", ".join(f"{game} {item_error(game):.4f}" for game in GAMES)
    record(
        "estimators",
        "Estimates of the Shapley value against exact values",
        ("game", "estimator", "coalitions an item", "calls an item", "RMSE", "bias"),
        rows,
        f"{PLAYERS} simulated players, {ITEMS} items, {REPEATS} repeats on the same items. Bias is the root mean square "
        "over players of the mean error; with unbiased estimators about RMSE / sqrt(repeats) of it is noise.",
        f"Standard error of the exact values from the choice of items: {errors}.",
    )
    for game in GAMES:
        ours, raw = found[game, "permutation, one order an item"], found[game, "leave-one-out"]
        assert ours["calls"] <= raw["calls"]
        assert ours["rmse"] < raw["rmse"]
        assert ours["bias"] < 3 * ours["rmse"] / np.sqrt(REPEATS)
