"""Simulated models: chat models with a chosen skill, whose values have a closed form.

In: skills, conformity and other settings. Out: chat models that answer in microseconds, and the outcomes to be expected of
them. Left out on purpose: real weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collabsim.lazy import lazy_names

if TYPE_CHECKING:
    from collabsim.models.simulation.simulated import SimulatedModel

__all__ = ["SimulatedModel"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "simulated": ("SimulatedModel",),
        },
    )
