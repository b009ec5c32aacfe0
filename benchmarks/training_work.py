"""The work of the training benchmark, the same on every side.

Out: the items of the example `train_vote.yaml` in the benchmark's sizes, the system around them, and what a step is said
to have been. Left out on purpose: who trains; see `training_sides.py` and `training_trl.py`.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from collabsim.trainers.item_order import visits_of_step
from collabsim.trainers.records import Visit
from collabsim.trainers.setup import PreparedTraining, prepare

from collabsim.episode import Reply, Usage
from collabsim.item import Answer, Score
from collabsim.request import Request
from collabsim.store import GenerationStore
from collabsim.system.system import System

EXAMPLE = Path(__file__).parents[1] / "examples" / "train_vote.yaml"
GROUP, ITEMS, TOKENS, LR, DRAWS = 8, 4, 8, 5e-6, 4
CHANGES = {
    "pool.learner.options.chat_format": "raw",  # the one in which no string ends a reply
    "pool.learner.sampling.max_tokens": TOKENS,
    "pool.learner.examples": [],  # short prompts: the less there is that a group has in common
    "train.group": GROUP,
    "train.items_per_step": ITEMS,
    "train.lr": LR,
    "train.steps": 1000,
    "train.partner_draws": DRAWS,
    "train.checkpoint_every": 1000,
    "train.eval.every": 0,
}


class Coin:
    """A scorer under which every other text is right, and no two texts are the same answer."""

    kind = "coin"

    def extract(self, text: str, *_: Any) -> Answer:
        return Answer(text, text)

    def same(self, a: Answer, b: Answer, *_: Any) -> bool:
        return a.value == b.value

    def score(self, text: str, *_: Any) -> Score:
        right = hashlib.sha256(text.encode()).digest()[0] % 2
        return Score(float(right), "right" if right else "wrong", text)


class Drawn:
    """A partner that says a number which its seed decides: what is measured begins once its words are stored."""

    revision = "0"

    def __init__(self, name: str) -> None:
        self.identity = f"drawn:{name}"

    async def areply(self, request: Request) -> Reply:
        return Reply(f"{request.seed % 1000}", usage=Usage(16, TOKENS))


@dataclass
class Step:
    """What one step was; seconds unless they are counts."""

    rollout: float
    """Until every reply has its reward."""
    learn: float
    push: float
    processor: float
    """Of all threads of the process, over the step."""
    tokens: int
    """Written by the learner."""
    rows: int
    """Trained on."""

    @property
    def seconds(self) -> float:
        return self.rollout + self.learn + self.push


def prepared(objective: str) -> PreparedTraining:
    """The example's system, items and settings in the benchmark's sizes."""
    changes = {**CHANGES, "train.objective": objective}
    made = prepare(EXAMPLE, [f"{key}={json.dumps(value)}" for key, value in changes.items()])
    return replace(made, items=tuple(replace(item, scorer=Coin()) for item in made.items))


def system_of(made: PreparedTraining, store: GenerationStore) -> System:
    """The example's vote with drawn partners."""
    system = made.system(store)
    for seat in system.pool:
        system = system if seat == "learner" else system.replace(seat, Drawn(seat))
    return system


def visits(made: PreparedTraining, first: int, steps: int) -> list[Visit]:
    """What is trained on in some steps, in their order."""
    return [visit for step in range(first, first + steps) for visit in visits_of_step(made.items, 0, step, ITEMS)]
