"""Prompt router: a router reads the question and a description of each seat, and picks the one that answers.

The router is a role: a fixed helper, or the best present seat. Present seats are numbered afresh for every coalition and
mapped back. A reply that names no seat, or several, falls to the first seat by preference (dev scores, else the item's
own order). Seats without a description of their own get one from dev items, where there are any; a seat that answered
none of these is never listed, so that it changes nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.graph import START, StateGraph

from collabsim.context import RunContext
from collabsim.item import Item
from collabsim.nodes.asking import AskRole
from collabsim.nodes.quoting import check_placeholder, fill
from collabsim.nodes.state import State, slot
from collabsim.playground import playground_graph
from collabsim.protocols import protocol
from collabsim.request import Messages, with_text
from collabsim.system.execute import CONCURRENCY, RunRequest, run_all
from collabsim.system.system import System

from .endings import end_by_reply
from .rounds import add_round, new_graph

ROUTE = (
    "Do not answer the question yourself. Which of these models is most likely to answer it right?\n\n{models}\n\n"
    "Reply with its number only."
)
ROUTER_DRAW = 1  # a router that is also a seat keeps draw 0 for its own answer
LAST_CHOICE = re.compile(r"(?:answer|model|number|choice)\W{0,4}(\d+)\W*$", re.IGNORECASE)


def chosen_number(text: str, count: int) -> int | None:
    """The number in 1..count that a router's reply names; None when it names none, another, or several."""
    lone = {int(number) for number in re.findall(r"(?<![\w.])\d+(?![\w]|\.\d)", text)}
    declared = LAST_CHOICE.search(text.strip())
    number = next(iter(lone)) if len(lone) == 1 else int(declared[1]) if declared else 0
    return number if 1 <= number <= count else None


def chosen_seat(state: State, run: RunContext) -> str:
    """The seat that the router picked; the first seat by preference when it picked none."""
    reply = state.get("replies", {}).get(slot("router", ROUTER_DRAW))
    listed = candidates(run)
    number = chosen_number(reply.text, len(listed)) if reply is not None else None
    return next(seat for seat in run.preference if seat in listed) if number is None else listed[number - 1]


def candidates(run: RunContext) -> list[str]:
    """The present seats that can be picked, in the run's order: those that never answered on dev only among themselves."""
    silent = run.fitted.get("silent", [])
    return [seat for seat in run.order if seat not in silent] or list(run.order)


def describe(run: RunContext, seat: str) -> str:
    """The description of a seat for the router."""
    fitted: dict[str, str] = run.fitted.get("descriptions", {})
    return run.pool[seat].description or fitted.get(seat, "") or seat


@dataclass(frozen=True, slots=True)
class Route:
    """The question, and the present seats by number."""

    text: str

    def __post_init__(self) -> None:
        check_placeholder(self.text, "models")

    def __call__(self, state: State, run: RunContext) -> Messages | None:  # noqa: ARG002 (a Prompt)
        """None when there is nothing to choose."""
        listed = candidates(run)
        if len(listed) < 2:
            return None
        models = "\n".join(f"{k}. {describe(run, seat)}" for k, seat in enumerate(listed, start=1))
        return with_text(run.item.messages, fill(self.text, models=models))


@dataclass(frozen=True, slots=True)
class IfPicked:
    """The task's own messages, for the seat that was picked."""

    seat: str

    def __call__(self, state: State, run: RunContext) -> Messages | None:
        """None for every other seat."""
        return run.item.messages if chosen_seat(state, run) == self.seat else None


async def describe_by_dev(
    system: System, dev_items: Sequence[Item], seed: int, *, concurrency: int = CONCURRENCY
) -> dict[str, Any]:
    """`fit`: one line for each seat, with the share of dev items it gets right by topic; and who answered none of them."""
    descriptions, silent = {}, []
    for seat in system.pool:
        scores, answered = defaultdict(list), 0
        requests = (RunRequest(item, seat=seat, run_seed=seed) for item in dev_items)
        runs = await run_all(system, requests, concurrency=concurrency)
        for item, run in zip(dev_items, runs, strict=True):
            scores[item.topic or "such questions"].append(run.episode.outcome or 0.0)
            answered += any(item.answers.extract(output.text, output.finish) for output in run.episode.final)
        shares = (f"{sum(got) / len(got):.0%} of {topic}" for topic, got in sorted(scores.items()))
        descriptions[seat] = "a model that gets right " + ", ".join(shares)
        if not answered:
            silent.append(seat)
    return {"descriptions": descriptions, "silent": silent}


@protocol(
    family="routing",
    roles=("router",),
    absent="an absent seat is not listed to the router; if it would route, the next present seat does",
    calls=lambda present, **_: present if present <= 1 else 2,
    fit=describe_by_dev,
)
def prompt_router(seats: Sequence[str], *, route: str = ROUTE) -> StateGraph[Any, Any, Any, Any]:
    """A router reads the question and the seats' descriptions, and one seat answers."""
    graph = new_graph()
    graph.add_node("route", AskRole("route", "router", Route(route), draw=ROUTER_DRAW))
    graph.add_edge(START, "route")
    nodes = [node for seat in seats for node in add_round(graph, [seat], prompt=IfPicked(seat), after=["route"])]
    end_by_reply(graph, nodes)
    return graph


graph = playground_graph(prompt_router)
