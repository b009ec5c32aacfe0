"""Measures the seconds of a step by activity.

In: `with watch("rollout"): ...`. Out: seconds of this step and of the whole training, by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter


class Stopwatch:
    """Adds up seconds by name; `total` goes on over resumed trainings."""

    def __init__(self, total: dict[str, float] | None = None) -> None:
        self.total = dict(total or {})
        self.lap: dict[str, float] = {}

    def reset(self) -> Stopwatch:
        """Begin a new step."""
        self.lap = {}
        return self

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Count the time in the block under `name`."""
        started = perf_counter()
        try:
            yield
        finally:
            seconds = perf_counter() - started
            self.lap[name] = round(self.lap.get(name, 0.0) + seconds, 4)
            self.total[name] = round(self.total.get(name, 0.0) + seconds, 4)
