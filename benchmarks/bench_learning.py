"""Whether it learns whatever the seed: a tiny router and a tiny aggregator, made and trained from scratch five times each.

The worlds are those of the tests, in which the learner has no reward of its own. A seed makes the model, and orders items and
draws replies in training. Recorded: the system's score on 200 held-out items before and after, and the gain.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from needed import how_to_get

pytest.importorskip("torch", reason=how_to_get(["torch"]))
sys.path += [str(Path(__file__).parents[1] / "tests" / folder) for folder in ("", "trainers")]

import aggregator_world
import router_world
from collabsim.trainers import train
from recording import record

from collabsim import System, Task

SEEDS = range(5)
World = tuple[Callable[[Path, int], Path], Callable[[Path], System], Callable[[], Task], list[Any], dict[str, Any]]
WORLDS: dict[str, World] = {
    "router": (
        router_world.router_folder,
        router_world.routed_system,
        router_world.task,
        router_world.train_items(96),
        router_world.TRAINING,
    ),
    "aggregator": (
        aggregator_world.aggregator_folder,
        aggregator_world.aggregated_system,
        aggregator_world.task,
        aggregator_world.items("train", 96),
        aggregator_world.TRAINING,
    ),
}


def learned(name: str, seed: int, folder: Path) -> dict[str, dict[str, Any]]:
    """Score of the system before and after a training, and the gain."""
    make, system, task, items, settings = WORLDS[name]
    model = make(folder / "model", seed)
    result = train(system(model), task(), items, out=folder / "run", **settings, seed=seed)
    return {moment: result.values[moment]["system"] for moment in ("before", "after", "gain")}


@pytest.mark.slow
def test_every_seed_raises_the_score_of_the_system_beyond_its_interval():
    rows = []
    for name in WORLDS:
        for seed in SEEDS:
            with tempfile.TemporaryDirectory() as folder:
                found = learned(name, seed, Path(folder))
            low, high = found["gain"]["ci95"]
            assert low > 0.1, (name, seed, found)
            scores = [f"{found[moment]['value']:.3f}" for moment in ("before", "after", "gain")]
            rows.append([name, str(seed), *scores[:2], f"{scores[2]} [{low:.3f}, {high:.3f}]"])
    record(
        "learning",
        "C-RL raises the score of a system, seed by seed",
        ["learner", "seed", "before", "after", "gain on 200 held-out items (95%)"],
        rows,
        "A tiny learner (two layers, made from scratch) with two frozen specialists; only `system` has a meaning for it. "
        "Steps: "
        + ", ".join(f"{name} {world[-1]['steps']}" for name, world in WORLDS.items())
        + ", of 12 items with 8 runs each.",
    )
