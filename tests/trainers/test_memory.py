"""A training does not grow: resident memory over 200 steps of a tiny router in a live system."""

from __future__ import annotations

import gc

import pytest
from collabsim.trainers import train
from collabsim.trainers.metrics import TrainProgress
from engines import requires
from router_world import routed_system, router_folder, task, train_items

STEPS, WARM_UP = 240, 40
MOST_GROWTH = 16
"""MiB over 200 steps; less than 1 was seen. A set of gradients of this router that stays behind at each step would be 80."""


class Resident(TrainProgress):
    """Notes the resident size of this process after each step, in MiB."""

    def __init__(self):
        import psutil

        self.process, self.sizes = psutil.Process(), []

    def advance(self, step):
        if step["step"] % 10 == 0:
            gc.collect()
        self.sizes.append(self.process.memory_info().rss / 2**20)


@pytest.mark.slow
@requires("torch", "transformers", "psutil")
def test_memory_does_not_grow_over_two_hundred_steps(tmp_path):
    settings = {"seat": "router", "group": 4, "items_per_step": 4, "lr": 4e-4, "loss": "dr_grpo", "norm_tokens": 1}
    kept = {"eval": {"every": 0, "test": False}, "checkpoint_every": 50}
    seen = Resident()
    system = routed_system(router_folder(tmp_path / "model"))
    train(system, task(2, 0), train_items(), out=tmp_path / "run", progress=seen, steps=STEPS, **settings, **kept)
    assert len(seen.sizes) == STEPS
    growth = max(seen.sizes[-20:]) - max(seen.sizes[WARM_UP - 20 : WARM_UP])
    assert growth < MOST_GROWTH, [round(size) for size in seen.sizes[::20]]
