"""Assigns roles to seats and helpers, and orders seats by preference.

In: a pool, dev scores, the user's wishes. Out: preference orders and role holders for one coalition. The order is made on
dev items (ties by name), never on test outcomes; without dev scores it is the run's own content-made order, in which no
seat gains from its name or place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from collabsim.pool import Pool

Rank = tuple[float, str]


def as_names(value: str | Sequence[str]) -> list[str]:
    """One name or several, as a list."""
    return [value] if isinstance(value, str) else list(value)


def dev_ranks(pool: Pool, scores: Mapping[str, float]) -> dict[str, Rank]:
    """Seat to rank by dev score, lowest first, ties by name; seats with one model share a rank. Empty without scores."""
    ranks: dict[str, Rank] = {}
    if scores:
        for seats in pool.same_model().values():
            mean = sum(scores[seat] for seat in seats) / len(seats)
            ranks.update({seat: (-mean, min(seats)) for seat in seats})
    return ranks


def by_rank(order: tuple[str, ...], ranks: Mapping[str, Rank]) -> tuple[str, ...]:
    """The seats of `order` best first; equals, and all without ranks, stay in their order."""
    return tuple(sorted(order, key=ranks.__getitem__)) if ranks else order


def hold_roles(
    roles: Sequence[str], wishes: Mapping[str, str | Sequence[str]], helpers: Pool, preference: Sequence[str]
) -> dict[str, str]:
    """Role to holder: the first wish that is a helper or present (in `preference`), else the best present seat.

    A role that nobody can hold is missing.
    """
    held = {}
    for role in roles:
        wished = as_names(wishes.get(role, ()))
        candidates = [name for name in wished if name in helpers or name in preference] or list(preference)
        if candidates:
            held[role] = candidates[0]
    return held
