"""The Shapley approximators of `shapiq`, by name, one item at a time.

In: a name such as `shapiq:KernelSHAP`, the number of players, a budget of evaluations per item, and the item's own
seed; outcomes of one item by mask. Out: first the coalitions that will be asked for (so that a sweep can be planned and
counted), then the values [n]. Every item draws its own coalitions, so errors of single items average out over items as
far as the approximator is unbiased; KernelSHAP, kADDSHAP, OwenSamplingSV and the sparse ones are not, at small budgets.
Left out on purpose: budgets of 2**n or more (exact values are cheaper) and anything not for Shapley values.
"""

from __future__ import annotations

import difflib
import inspect
import random
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collabsim.coalitions import masks
from collabsim.coalitions.values import Floats
from collabsim.errors import ConfigError, MissingOutcomesError, PrerequisiteError
from collabsim.seeds import derive_seed

PREFIX = "shapiq:"
_GLOBALS = threading.RLock()

ItemLookup = Callable[[int], float | None]
"""Outcome of one item by mask; None or NaN when it is missing."""


def approximators() -> tuple[str, ...]:
    """Names of all approximators of Shapley values in the installed shapiq, sorted."""
    return tuple(sorted(f"{PREFIX}{name}" for name in _classes()))


def item_seed(run_seed: int, item_id: str) -> int:
    """The random state of one item, from content only."""
    return derive_seed("shapiq", run_seed, item_id)


@lru_cache(maxsize=1 << 14)
def plan(name: str, n: int, budget: int, seed: int) -> tuple[int, ...]:
    """The masks that `values` will ask for, ascending, the empty and the full coalition included.

    Found by running the approximator on the game v(S) = |S|. Raises `ConfigError` for an unknown name, for a budget of
    2**n or more (use exact), for one that the approximator cannot work with, and for one at which some player is never
    seen (shapiq then reports 0 for it); `PrerequisiteError` when shapiq lacks a package for it.
    """
    if budget >= 1 << n:
        raise ConfigError(
            f"expected a budget below 2**{n} = {1 << n} evaluations for {n} players, got {budget}; use exact instead"
        )
    evaluated: set[int] = {0, masks.full(n)}

    def game(mask: int) -> float:
        evaluated.add(mask)
        return float(masks.size(mask))

    unseen = np.flatnonzero(np.abs(_approximate(name, n, budget, seed, game)) < 1e-9)
    if len(unseen):
        raise ConfigError(
            f"a budget of {budget} is too small for {name} with {n} players: {len(unseen)} of them would never be "
            "seen and get 0; raise the budget"
        )
    return tuple(sorted(evaluated))


def values(name: str, n: int, budget: int, seed: int, outcome: ItemLookup) -> Floats:
    """Shapley values [n] of one item from the coalitions of `plan(name, n, budget, seed)`.

    `outcome` is asked for planned masks only. Raises as `plan` does, `MissingOutcomesError` when an outcome is missing,
    and `ConfigError` when the approximator chooses coalitions by earlier outcomes and so leaves its plan.
    """
    planned = frozenset(plan(name, n, budget, seed))

    def game(mask: int) -> float:
        if mask not in planned:
            raise ConfigError(
                f"{name} chooses coalitions by the outcomes it has seen, so its sweep cannot be planned; "
                f"use another of {', '.join(approximators())}"
            )
        value = outcome(mask)
        if value is None or value != value:
            raise MissingOutcomesError(
                f"expected an outcome for every coalition that {name} asks for, players "
                f"{list(masks.members(mask))} have none; resume the sweep"
            )
        return value

    return _approximate(name, n, budget, seed, game)


def _approximate(name: str, n: int, budget: int, seed: int, game: Callable[[int], float]) -> Floats:
    approximator = _build(name, n, seed)
    powers = 1 << np.arange(n)

    def batch(coalitions: NDArray[np.bool_]) -> Floats:  # shapiq sends one coalition [n] or several [k, n]
        return np.array([game(int(row @ powers)) for row in np.atleast_2d(coalitions).astype(np.int64)])

    try:
        with warnings.catch_warnings(), _seeded_globals(seed):
            warnings.simplefilter("ignore")
            values_by_player = approximator.approximate(budget, batch)
    except (ValueError, IndexError, ZeroDivisionError, np.linalg.LinAlgError) as error:
        raise ConfigError(
            f"{name} cannot work with a budget of {budget} for {n} players ({error}); change the budget"
        ) from error
    return np.array([float(values_by_player[(player,)]) for player in range(n)])


def _build(name: str, n: int, seed: int) -> Any:
    classes = _classes()
    kind = classes.get(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None
    if kind is None:
        close = difflib.get_close_matches(name, approximators(), n=1, cutoff=0.5)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise ConfigError(f"no approximator is called {name!r}; {hint}there are {', '.join(approximators())}")
    parameters = inspect.signature(kind.__init__).parameters
    options = {option: value for option, value in {"index": "SV", "max_order": 1}.items() if option in parameters}
    try:
        return kind(n=n, random_state=seed, **options)
    except ImportError as error:
        raise PrerequisiteError(f"{name} needs a package that is not installed: {error}") from error


@contextmanager
def _seeded_globals(seed: int) -> Iterator[None]:
    """Seeds the global generators and puts their states back: SPEX draws from them whatever its `random_state` is."""
    with _GLOBALS:
        plain, array = random.getstate(), np.random.get_state()
        random.seed(seed)
        np.random.seed(seed)
        try:
            yield
        finally:
            random.setstate(plain)
            np.random.set_state(array)


@lru_cache(maxsize=1)
def _classes() -> dict[str, Any]:
    """Approximator classes by name: those that shapiq lists for the Shapley value."""
    from shapiq import approximator

    return {kind.__name__: kind for kind in approximator.SV_APPROXIMATORS}
