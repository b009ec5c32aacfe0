"""A training in a process of its own that kills itself: `python training_program.py MODEL OUT PLACE STEP`."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import safetensors.torch
from collabsim.trainers import train, training
from router_world import routed_system, task, train_items
from test_training import SMALL


def dies_in(place: str, step: int) -> None:
    """Let the `step`-th entry into a part of the loop be the last thing this process does, half way through it."""
    owner, name = {
        "rollout": (training.BatchMaker, "collect"),
        "update": (training, "update"),
        "push": (training.Training, "look_at_dev"),
        "checkpoint": (safetensors.torch, "save_file"),
    }[place]
    real, calls = getattr(owner, name), []

    def deadly(*arguments, **settings):
        calls.append(1)
        if len(calls) == step:
            if place != "push":
                real(*arguments, **settings)
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **settings)

    setattr(owner, name, deadly)


if __name__ == "__main__":
    folder, out, place, step = sys.argv[1:]
    dies_in(place, int(step))
    train(routed_system(Path(folder)), task(8, 6), train_items(12), out=out, **SMALL)
