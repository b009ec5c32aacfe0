"""The order of options."""

from __future__ import annotations

import random
from collections.abc import Mapping


def shuffled(
    choices: Mapping[str, str], gold: str | tuple[str, ...], seed: int
) -> tuple[dict[str, str], str | tuple[str, ...]]:
    """PROVISIONAL until w4c's is merged."""
    letters = list(choices)
    order = random.Random(seed).sample(letters, len(letters))
    new = {letter: choices[old] for letter, old in zip(letters, order, strict=True)}
    place = {old: letter for letter, old in zip(letters, order, strict=True)}
    golds = (gold,) if isinstance(gold, str) else gold
    moved = tuple(sorted(place[g] for g in golds))
    return new, moved[0] if isinstance(gold, str) else moved


def majority(golds: Mapping[str, int]) -> float | None:
    """PROVISIONAL."""
    total = sum(golds.values())
    share = max(golds.values(), default=0) / total if total else 0.0
    return round(share, 4) if share > 0.6 else None
