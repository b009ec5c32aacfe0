"""A world in which only the system can teach: a tiny aggregator, made from scratch, that reads two specialists.

Each specialist knows one kind of question, and answers A or B; to the other kind it says C or D, which is never right. The
aggregator starts by repeating either of the two at random and learns which proposals to trust. Each specialist alone is right
half of the time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from router_world import TRAINING as ROUTER_TRAINING
from router_world import start_folder, teach
from scripted import Scripted, last_words

from collabsim import Pool, Sampling, Seat, System, Task, make_item
from collabsim.episode import Reply
from collabsim.nodes.quoting import quote_all
from collabsim.request import Message, Messages, with_text
from collabsim.seeds import derive_seed

KINDS = ("river", "mountain")
RIGHT, WRONG = "AB", "CD"
TRAINING = {**ROUTER_TRAINING, "seat": "aggregator", "steps": 30}
"""Enough to learn it, whatever the seed."""


def aggregator_folder(folder: Path, seed: int = 0) -> Path:
    """A model that repeats one of two proposals at random."""
    start_folder(folder, seed)
    shown = [pair for letters in zip(RIGHT * 2, WRONG + WRONG[::-1], strict=True) for pair in (letters, letters[::-1])]
    asked = [(to_aggregator(question("form", k), pair), pair) for k in range(4) for pair in shown]
    teach(folder, [(prompt, letter) for prompt, pair in asked for letter in pair])
    return folder


def question(split: str, number: int) -> str:
    """Questions of a split, of both kinds in turn; splits never share one."""
    first = {"form": 100, "train": 200, "dev": 500, "test": 600}[split]
    return f"{KINDS[number % 2]} {first + number}"


def gold(text: str) -> str:
    return RIGHT[derive_seed("gold", text) % 2]


def to_aggregator(text: str, shown: tuple[str, ...]) -> Messages:
    return with_text((Message("user", text),), quote_all(Reply(letter) for letter in shown))


def items(split: str, count: int) -> list[Any]:
    return [
        make_item(text, gold(text), kind="text", prompt="{question}")
        for text in (question(split, number) for number in range(count))
    ]


def specialist(kind: str) -> Scripted:
    """Right on its own kind of question, wrong on the other."""

    def say(request: Any) -> str:
        text = last_words(request)
        return gold(text) if text.startswith(kind) else WRONG[derive_seed(kind, text) % 2]

    return Scripted(f"specialist in {kind}", say)


def aggregated_system(folder: Path, engine: str = "transformers") -> System:
    """The aggregator as a helper that reads both specialists, in an order of the item's own."""
    from collabsim.models.local.local_model import LocalModel

    model = LocalModel(spec=str(folder), engine=engine, dtype="float32")
    return System(
        "trained_aggregator",
        {kind: specialist(kind) for kind in KINDS},
        options={"aggregate": "{answers}"},
        helpers=Pool({"aggregator": Seat("aggregator", model, sampling=Sampling(temperature=1.0, max_tokens=2))}),
        roles={"aggregator": "aggregator"},
    )


def task(tests: int = 200, dev: int = 32) -> Task:
    return Task("aggregator world", tuple(items("test", tests)), tuple(items("dev", dev)))
