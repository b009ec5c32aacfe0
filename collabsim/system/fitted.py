"""The record of what was fitted on dev items, as a run folder keeps it.

Left out on purpose: fitting; see `fitting.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Fitted:
    """Made on dev, on the full pool, once; the same for every coalition."""

    data: Mapping[str, Any] = field(default_factory=dict)
    """What the protocol's `fit` returned (JSON)."""
    dev_scores: Mapping[str, float] = field(default_factory=dict)
    """Mean score of each seat's own answers on the dev items."""
    inputs: str = ""
    """Hash of everything that went in."""
    dev_items: int = 0
