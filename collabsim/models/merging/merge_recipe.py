"""The settings of a merge of weights, as data: part of the merged model's identity."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Method = Literal["mean", "task_arithmetic", "ties", "dare_ties"]


@dataclass(frozen=True, slots=True)
class MergeRecipe:
    """A way of merging. Settings that a method does not use play no part in what comes out."""

    method: Method = "mean"
    """`mean`: the members' mean (model soup). The others add to the base: the sum of the members' deltas
    (`task_arithmetic`), or their trimmed (`ties`) or randomly thinned (`dare_ties`) deltas under an elected sign."""
    scale: float = 1.0
    """Factor on what is added to the base."""
    density: float = 1.0
    """Share of each delta that is kept, in (0, 1]."""
    seed: int = 0
    """Of the random masks of `dare_ties`."""

    def __post_init__(self) -> None:
        if not 0 < self.density <= 1:
            raise ValueError(f"merge: density must be in (0, 1], got {self.density}")

    def as_json(self) -> dict[str, Any]:
        """All settings, and a version that rises when a method changes what it makes."""
        return {**asdict(self), "version": 1}
