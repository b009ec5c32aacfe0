"""What is fitted on dev items before a sweep: dev scores of the seats, and whatever the protocol's `fit` makes.

In: a system and its task's dev items. Out: a `Fitted` record with the hash of its inputs, which a run folder keeps and
a resumed sweep reads back. Test items are never seen here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from collabsim.errors import CallError, ConfigError, MissingOutcomesError
from collabsim.item import Item
from collabsim.seeds import digest
from collabsim.system.execute import CONCURRENCY, RunRequest, run_all
from collabsim.system.fitted import Fitted
from collabsim.system.system import System


def fit_inputs(system: System, items: Sequence[Item], seed: int) -> str:
    """Hash of the system as it is before fitting, the dev items and the seed."""
    return digest([replace(system, fitted=Fitted()).identity, sorted(item.id for item in items), seed])


def check_dev_items(system: System, items: Sequence[Item]) -> None:
    """Raises `ConfigError` when the protocol is fitted on dev items and there are none."""
    if "dev" in system.protocol.needs and not items:
        raise ConfigError(
            f"protocol {system.protocol.name!r} is fitted on dev items and the task has none; "
            "add `dev: {limit: 50, seed: 2}` under 'task:'"
        )


async def afit(system: System, items: Sequence[Item], *, seed: int = 0, concurrency: int = CONCURRENCY) -> Fitted:
    """Score every seat alone on the dev items and run the protocol's `fit`, at most `concurrency` runs at a time.

    Without dev items the result is empty. Raises `ConfigError` when the protocol needs dev items and there are none,
    `MissingOutcomesError` when a model call on a dev item failed (run again to retry).
    """
    check_dev_items(system, items)
    if not items:
        return Fitted()
    outcomes = await dev_outcomes(system, items, seed, concurrency=concurrency)
    scores = {seat: sum(scored) / len(scored) for seat, scored in outcomes.items()}
    fitted = Fitted(dev_scores=scores, inputs=fit_inputs(system, items, seed), dev_items=len(items))
    if system.protocol.fit is None:
        return fitted
    try:
        data = system.protocol.fit(
            replace(system, fitted=fitted), items, seed, **_bound(system.protocol.fit, concurrency)
        )
        return replace(fitted, data=await data if inspect.isawaitable(data) else data)
    except CallError as error:
        raise MissingOutcomesError(
            f"protocol {system.protocol.name!r} cannot be fitted: a call on a dev item failed ({error}); "
            "run the same command again to retry it"
        ) from error


def _bound(fit: Callable[..., Any], concurrency: int) -> dict[str, int]:
    """The keyword `concurrency`, for a `fit` that takes it."""
    return {"concurrency": concurrency} if "concurrency" in inspect.signature(fit).parameters else {}


async def dev_outcomes(
    system: System, items: Sequence[Item], seed: int, *, concurrency: int = CONCURRENCY
) -> dict[str, list[float]]:
    """The score of every seat's own answer to every dev item, in the order of `items`.

    Raises `MissingOutcomesError` when a model call on a dev item failed.
    """
    return {seat: await _dev_outcomes(system, items, seat, seed, concurrency) for seat in system.pool}


async def _dev_outcomes(system: System, items: Sequence[Item], seat: str, seed: int, concurrency: int) -> list[float]:
    requests = (RunRequest(item, seat=seat, run_seed=seed) for item in items)
    episodes = [run.episode for run in await run_all(system, requests, concurrency=concurrency)]
    outcomes = [episode.outcome for episode in episodes if episode.outcome is not None]
    if len(outcomes) < len(episodes):
        error = next(episode.error for episode in episodes if episode.error)
        raise MissingOutcomesError(
            f"{len(episodes) - len(outcomes)} of {len(episodes)} dev items of seat {seat!r} have no score "
            f"({error.kind}: {error.message}); run the same command again to retry them"
        )
    return outcomes
