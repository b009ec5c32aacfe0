"""The items of each step: an endless order that depends on the seed and the items alone.

In: items, a seed, a step. Out: the visits of that step. Every pass through the items has its own order, so a resumed
training needs to know nothing but its step.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from collabsim.item import Item
from collabsim.seeds import derive_seed

from .records import Visit


def visits_of_step(items: Sequence[Item], seed: int, step: int, per_step: int) -> list[Visit]:
    """The `per_step` items of a step (counted from 0), each with how often it was visited before."""
    by_id = {item.id: item for item in items}
    ids = tuple(sorted(by_id))
    places = range(step * per_step, (step + 1) * per_step)
    return [Visit(by_id[_order(ids, seed, place // len(ids))[place % len(ids)]], place // len(ids)) for place in places]


@lru_cache(maxsize=4)
def _order(ids: tuple[str, ...], seed: int, number: int) -> tuple[str, ...]:
    return tuple(sorted(ids, key=lambda item: (derive_seed("item order", seed, number, item), item)))
