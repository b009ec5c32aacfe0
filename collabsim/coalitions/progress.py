"""The events that a sweep reports while it runs.

Left out on purpose: how they are shown; see `report`.
"""

from __future__ import annotations

from collabsim.episode import Episode


class Progress:
    """Receives the progress of a sweep while it runs; the base class ignores it."""

    def start(self, total: int, done: int) -> None:
        """Called once, with the number of runs in the plan and of those that are there already."""

    def advance(self, episode: Episode) -> None:
        """Called after every run."""
