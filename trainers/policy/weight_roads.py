"""The roads by which weights reach engines, by the names that kinds of engines give them.

In: a name, as `EngineKind.weight_road` gives it. Out: a `Road`: how a policy on that road is opened and how weights are sent.
A road for an engine of one's own is one entry of `ROADS`, or of the entry-point group `collabsim.weight_roads`. Left out on
purpose: which engine takes which road (its kind decides), and the sending itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from collabsim.errors import ConfigError, nearest
from collabsim.plugins import load, registered

from .gpu_transfer import GpuTransfer
from .weight_transfer import InPlaceReload, SharedWeights, WeightTransfer

GROUP = "collabsim.weight_roads"


@dataclass(frozen=True, slots=True)
class Road:
    """One way of weights from a learner to the engine that speaks for it."""

    transfer: Callable[[Any, int], WeightTransfer]
    """(running engine, its number of GPUs) -> what sends the weights."""
    shares_weights: bool = False
    """Whether the engine generates with the learner's own tensors."""
    own_gpu: bool = False
    """Whether the learner takes the GPU after those of the engine, where its device is not named."""


def _ipc(engine: Any, workers: int) -> WeightTransfer:
    return GpuTransfer(engine, "ipc", workers)


def _nccl(engine: Any, workers: int) -> WeightTransfer:
    return GpuTransfer(engine, "nccl", workers)


def _reload(engine: Any, workers: int) -> WeightTransfer:
    del workers
    return InPlaceReload(engine)


def _shared(engine: Any, workers: int) -> WeightTransfer:
    del workers
    return SharedWeights(engine)


ROADS = {
    "shared": Road(_shared, shares_weights=True),
    "reload": Road(_reload),
    "ipc": Road(_ipc),
    "nccl": Road(_nccl, own_gpu=True),
}


def road_named(name: str) -> Road:
    """The road of this name. Raises `ConfigError`, naming the nearest, for one that is not there."""
    if name in ROADS:
        return ROADS[name]
    added = registered(GROUP)
    if name not in added:
        known = sorted({*ROADS, *added})
        raise ConfigError(f"no road {name!r} for weights{nearest(name, known)}; known are {', '.join(known)}")
    road: Road = load(added[name], "road for weights")
    return road
