"""Cascade: the cheapest seat answers, and where it is not confident the next one does.

Seats come by cost where `costs` are given, else by dev score, weakest first. Confidence is what the seat itself reports
when asked how likely its answer is right, or the mean probability of its reply's tokens (the end token included; the
distribution they were sampled from). An answer at or above the seat's threshold is final. A reply without an answer
defers, whatever its confidence, and so does a report that names no number, unless the threshold is 0. The last present
seat answers unconditionally; if it gives no answer, the last one that was given before stands. A failed call is no
low confidence: it fails the run, like everywhere.

Thresholds are given for all, or fitted on dev items for each seat: where deferring to the rest of the cascade scores best,
with the fewest deferrals among equals. They are fitted once, on the full pool, and hold for every coalition. Without dev
items they are 0.5. (After FrugalGPT, arXiv 2305.05176, without a trained scorer.)
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Annotated, Any, Literal

from langgraph.graph import END, START, StateGraph
from pydantic import Field

from collabsim.context import RunContext
from collabsim.episode import Reply
from collabsim.errors import ConfigError
from collabsim.item import Item, ItemView
from collabsim.nodes.asking import ask
from collabsim.nodes.current_run import context_of
from collabsim.nodes.state import Replies, State, slot
from collabsim.nodes.voting import share
from collabsim.playground import playground_graph
from collabsim.protocols import protocol
from collabsim.request import Message, Messages, with_text
from collabsim.scorers.reading.text import final_part
from collabsim.system.execute import CONCURRENCY, call_all
from collabsim.system.fitting import dev_outcomes
from collabsim.system.running import reply_of_seat
from collabsim.system.system import System

from .rounds import new_graph

REPORT = "How likely is it that your answer is right? Reply with one number from 0 to 100 only."
REPORT_DRAW = 1
DEFAULT_THRESHOLD = 0.5
NEVER = 2.0
"""A threshold that no confidence reaches."""
_OUT_OF = re.compile(r"(\d+(?:\.\d+)?)\s*(?:/|out of|of)\s*100\b")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w]|\.\d)")

Kind = Literal["report", "probability"]


class CascadeState(State, total=False):
    """The shared state, and the seat whose answer was good enough."""

    accepted: str


def reported(text: str) -> float:
    """The confidence in [0, 1] that a reply states on a scale of 0 to 100; 0 when it names no number, or several.

    `0.85` is read as 85 of 100: models slip into that scale, and nobody means less than one percent by it.
    """
    text = final_part(text) or ""
    numbers = {float(number) for number in _OUT_OF.findall(text)} or {float(match) for match in _NUMBER.findall(text)}
    number = numbers.pop() if len(numbers) == 1 else 0.0
    if 0 < number <= 1 and re.search(r"\d\.\d", text):
        return number
    return number / 100 if number <= 100 else 0.0


def token_confidence(reply: Reply, seat: str) -> float:
    """Mean probability of all tokens of a reply, its end token included. Raises `ConfigError` for a reply without them."""
    if reply.tokens is None or not reply.tokens.logprobs:
        raise ConfigError(
            f"confidence: probability needs the log-probabilities of tokens, and the model of seat {seat!r} gives none "
            "(local models do); use confidence: report"
        )
    return math.fsum(map(math.exp, reply.tokens.logprobs)) / len(reply.tokens.logprobs)


def ask_back(view: ItemView, reply: Reply, text: str) -> Messages:
    """The question, the seat's own reply, and the request for its confidence."""
    return with_text((*view.messages, Message("assistant", reply.text)), text)


def cascade_order(run: RunContext, costs: Mapping[str, float] | None) -> tuple[str, ...]:
    """Present seats in the order in which they are tried: by cost, else from the least to the most preferred."""
    return tuple(reversed(run.preference)) if costs is None else tuple(sorted(run.order, key=costs.__getitem__))


def answered(run: RunContext, reply: Reply) -> bool:
    """Whether a reply commits to an answer."""
    return run.answers.extract(reply.text, reply.finish) is not None


@dataclass(frozen=True, slots=True)
class Try:
    """The node of one place in the cascade: ask the seat there, and find out how confident it is."""

    node: str
    place: int
    confidence: Kind
    threshold: float | None
    """One for all seats; None: as fitted."""
    costs: Mapping[str, float] | None
    report: str

    async def __call__(self, state: CascadeState, runtime: Any) -> dict[str, Any] | None:
        """Nothing when an earlier answer was accepted or fewer seats are present."""
        run = context_of(runtime)
        order = cascade_order(run, self.costs)
        if "accepted" in state or self.place >= len(order):
            return None
        seat = order[self.place]
        reply = await ask(runtime, seat, run.item.messages, node=self.node)
        assert isinstance(reply, Reply)  # the seat is present
        replies = {slot(seat, 0): reply}
        if not answered(run, reply):
            return {"replies": replies}
        if self.place == len(order) - 1:
            return {"replies": replies, "accepted": seat}
        confidence, report = await self._confidence(runtime, run, seat, reply)
        accepted = {"accepted": seat} if confidence >= self._threshold(run, seat) else {}
        return {"replies": {**replies, **report}, **accepted}

    def _threshold(self, run: RunContext, seat: str) -> float:
        if self.threshold is not None:  # 0 is a threshold
            return self.threshold
        fitted: Mapping[str, float] = run.fitted.get("thresholds", {})
        return fitted.get(seat, DEFAULT_THRESHOLD)

    async def _confidence(self, runtime: Any, run: RunContext, seat: str, reply: Reply) -> tuple[float, Replies]:
        if self.confidence == "probability":
            return token_confidence(reply, seat), {}
        messages = ask_back(run.item, reply, self.report)
        report = await ask(runtime, seat, messages, draw=REPORT_DRAW, node=self.node)
        assert isinstance(report, Reply)
        return reported(report.text), {slot(seat, REPORT_DRAW): report}


async def fit_thresholds(
    system: System, dev_items: Sequence[Item], seed: int, *, concurrency: int = CONCURRENCY
) -> dict[str, Any]:
    """`fit`: a threshold for each seat, from the last seat backwards; nothing where `threshold` is given."""
    if system.options["threshold"] is not None:
        return {}
    costs = system.options["costs"]
    rank = system.ranks.__getitem__ if costs is None else lambda seat: (-costs[seat], seat)
    strongest_first = sorted(system.pool, key=rank)
    outcomes = await dev_outcomes(system, dev_items, seed, concurrency=concurrency)
    thresholds = {strongest_first[0]: 0.0}
    deferred = outcomes[strongest_first[0]]
    for seat in strongest_first[1:]:
        ask_seat = partial(dev_confidence, system, seat, seed)
        confidences = await call_all(ask_seat, dev_items, concurrency=concurrency)
        best = best_threshold(confidences, outcomes[seat], deferred)
        thresholds[seat] = best
        deferred = [
            score if confidence >= best else later
            for confidence, score, later in zip(confidences, outcomes[seat], deferred, strict=True)
        ]
    return {"thresholds": thresholds}


async def dev_confidence(system: System, seat: str, seed: int, item: Item) -> float:
    """A seat's confidence in its own answer to a dev item; below every threshold when it gave none."""
    options = system.options
    reply = await reply_of_seat(system, item, seat, item.view.messages, run_seed=seed)
    if item.answers.extract(reply.text, reply.finish) is None:
        return -1.0
    if options["confidence"] == "probability":
        return token_confidence(reply, seat)
    messages = ask_back(item.view, reply, options["report"])
    report = await reply_of_seat(system, item, seat, messages, draw=REPORT_DRAW, run_seed=seed)
    return reported(report.text)


def best_threshold(confidences: Sequence[float], scores: Sequence[float], deferred: Sequence[float]) -> float:
    """The threshold under which a seat's accepted scores and the deferred ones add up to most; the lowest of equals.

    All three are by dev item. Candidates lie half-way between neighbouring confidences; 0 accepts every answer and `NEVER`
    none. Confidences below 0 are never accepted.
    """
    levels = sorted({confidence for confidence in confidences if confidence >= 0})
    between = [(low + high) / 2 for low, high in pairwise(levels)]

    def total(threshold: float) -> float:
        taken = (
            score if confidence >= threshold else later
            for confidence, score, later in zip(confidences, scores, deferred, strict=True)
        )
        return round(math.fsum(taken), 9)

    return max([0.0, *between, NEVER], key=total)  # the first of equals is the lowest


@protocol(
    family="routing",
    absent="an absent seat is skipped; the last present one answers unconditionally",
    calls=lambda present, *, confidence, **_: max(2 * present - 1, 0) if confidence == "report" else present,
    fit=fit_thresholds,
    fit_calls=lambda seats, *, confidence, threshold, **_: (
        seats - 1 if confidence == "report" and threshold is None else 0
    ),
)
def cascade(
    seats: Sequence[str],
    *,
    confidence: Kind = "report",
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None,
    costs: dict[str, Annotated[float, Field(ge=0)]] | None = None,
    report: str = REPORT,
) -> StateGraph[Any, Any, Any, Any]:
    """Seats are tried one after the other, cheapest or weakest first, until one is confident of its answer."""
    if costs is not None and set(costs) != set(seats):
        raise ConfigError(f"costs: expected a number for each seat {sorted(seats)}, got some for {sorted(costs)}")
    graph = new_graph(CascadeState)
    last = START
    for place in range(len(seats)):
        node = f"try-{place}"
        graph.add_node(node, Try(node, place, confidence, threshold, costs, report))
        graph.add_edge(last, node)
        last = node

    async def finish(state: CascadeState, runtime: Any) -> dict[str, Any]:
        run = context_of(runtime)
        replies = state.get("replies", {})
        if "accepted" in state:
            return {"final": share([replies[slot(state["accepted"], 0)]])}
        tried = [replies[place] for seat in cascade_order(run, costs) if (place := slot(seat, 0)) in replies]
        return {"final": share([reply for reply in tried if run.alone or answered(run, reply)][-1:])}

    graph.add_node("finish", finish)
    graph.add_edge(last, "finish")
    graph.add_edge("finish", END)
    return graph


graph = playground_graph(cascade)
