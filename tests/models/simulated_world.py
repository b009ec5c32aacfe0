"""Items, requests and frequencies for tests of simulated models."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from collabsim.episode import Reply
from collabsim.item import Item, ItemView
from collabsim.models.simulation.simulated import SimulatedModel
from collabsim.request import Message, Messages, Request, Sampling
from collabsim.seeds import digest

_LOOP = asyncio.new_event_loop()

FORMAT = "Finish with a line `Answer: X`, where X is your answer."


def item(
    question: str = "What is 17 + 25?",
    gold: str = "42",
    *,
    choices: Mapping[str, str] | None = None,
    topic: str = "",
    difficulty: float | None = 0.0,
    chance: float | None = None,
) -> Item:
    options = dict(choices or {})
    listed = "".join(f"\n{letter}. {text}" for letter, text in options.items())
    kind = "choice" if options else "number"
    name = digest([question, options, gold])[:16]
    prompt = f"{question}{listed}\n\n{FORMAT}"
    view = ItemView(name, (Message("user", prompt),), options, kind)
    guess = (1 / len(options) if options else 0.0) if chance is None else chance
    return Item(name, question, gold, view, None, topic, difficulty, guess)  # type: ignore[arg-type] # no scoring here


def ask(model: SimulatedModel, messages: Messages, seed: int = 0, **sampling: object) -> Reply:
    return _LOOP.run_until_complete(model.areply(Request(messages, Sampling().replace(**sampling), seed)))


def said(reply: Reply) -> str | None:
    """The declared answer of a simulated reply."""
    _, found, answer = reply.text.rpartition("Answer: ")
    return answer if found else None


def frequency(draw: Callable[[int], bool], n: int) -> float:
    return sum(draw(seed) for seed in range(n)) / n


def near(observed: float, expected: float, n: int) -> bool:
    """Within four standard errors of a proportion (and never exact by accident of a zero variance)."""
    return abs(observed - expected) <= 4 * max(expected * (1 - expected), 1e-12) ** 0.5 / n**0.5 + 1e-9
