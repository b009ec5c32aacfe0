"""The engines of this process: one per model and settings, started on first use.

In: a key and how to start. Out: a running engine, the same one for every seat that shares the key. Engines start one at a
time, since each measures the memory that is free. Left out on purpose: what an engine is; see `engine.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from collabsim.models.engines.engine import Engine

_running: dict[str, Engine] = {}
_starting = threading.Lock()


def shared_engine(key: str, start: Callable[[], Engine]) -> Engine:
    """The engine of this key, started now if there is none. Raises what `start` raises; the next call tries again."""
    engine = _running.get(key)
    if engine is None:
        with _starting:
            engine = _running.get(key)
            if engine is None:
                engine = _running[key] = start()
    return engine


def engine_runs(key: str) -> bool:
    """Whether the engine of this key has been started and not closed."""
    return key in _running


def retire_engine(key: str) -> None:
    """Close the engine of this key, if it runs; the next request starts it anew."""
    with _starting:
        engine = _running.pop(key, None)
        if engine is not None:
            engine.close()


def close_engines() -> None:
    """Close all engines of this process; the next request starts them anew."""
    with _starting:
        while _running:
            _running.popitem()[1].close()
