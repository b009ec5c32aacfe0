"""The price of collabsim around a graph: CPU time of a run against LangGraph running the same graph with empty nodes.

In: a protocol's name. Out: CPU milliseconds per run of both, measured side by side: the two take turns run by run, so
that other work on the machine slows both alike. Every generation is in the store before the clock starts. The clock
counts this process's CPU time, all threads included.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from statistics import median

from langgraph.graph import StateGraph

from collabsim import Pool, SimulatedModel, State, System
from collabsim.item import Item
from collabsim.tasks import make_item

PROTOCOLS = ("majority_vote", "debate", "mixture_of_agents", "prompt_router")
MOST_TIMES_BARE = 1.5
"""What the issue allows: CPU time of a run over that of the bare graph."""


@dataclass(frozen=True)
class Overhead:
    """CPU milliseconds per run, medians over rounds; `ratio` is the median over rounds of each round's own ratio."""

    protocol: str
    seats: int
    bare_ms: float
    ours_ms: float
    ratio: float


def stored_system(protocol: str, seats: int, items: list[Item]) -> System:
    """A system of simulated members that knows the items; its store fills with the first run on each."""
    models = {f"m{k}": SimulatedModel(name=f"m{k}", skill=k / 2 - 1, conformity=0.3) for k in range(seats)}
    system = System(protocol, Pool(models))
    system.study(items)
    return system


def sample_items(count: int) -> list[Item]:
    """Distinct sums."""
    return [make_item(f"What is {k} + {7 * k}?", str(8 * k)) for k in range(count)]


def bare_graph(compiled):
    """A compiled graph with the nodes and edges of the given one, in which every node does nothing."""
    builder = compiled.builder
    assert not builder.branches, "conditional edges would need states that empty nodes do not write"

    async def nothing(_state):
        return None

    graph = StateGraph(State)
    for node in builder.nodes:
        graph.add_node(node, nothing)
    for source, target in builder.edges:
        graph.add_edge(source, target)
    for sources, target in builder.waiting_edges:
        graph.add_edge(list(sources), target)
    assert (graph.edges, graph.waiting_edges) == (builder.edges, builder.waiting_edges)
    return graph.compile()


def measure(protocol: str, *, seats: int = 4, items: int = 20, rounds: int = 15) -> Overhead:
    """CPU time of `rounds` x `items` runs of both, taking turns."""
    asked = sample_items(items)
    system = stored_system(protocol, seats, asked)
    bare = bare_graph(system.graph)
    return asyncio.run(_measure(protocol, system, bare, asked, rounds))


async def _measure(protocol: str, system: System, bare, items: list[Item], rounds: int) -> Overhead:
    for item in items:
        await system.arun(item)
        await bare.ainvoke({})
    generated = system.store.generated
    gc.collect()
    times = [await _round(system, bare, items) for _ in range(rounds)]
    assert system.store.generated == generated, "something was generated while the clock ran"
    theirs, ours = zip(*times, strict=True)
    per_run = 1000 / len(items)
    ratio = median(own / other for other, own in times)
    return Overhead(protocol, len(system.pool), median(theirs) * per_run, median(ours) * per_run, ratio)


async def _round(system: System, bare, items: list[Item]) -> tuple[float, float]:
    theirs = ours = 0.0
    for item in items:
        theirs += await _cpu(lambda: bare.ainvoke({}))
        ours += await _cpu(lambda item=item: system.arun(item))
    return theirs, ours


async def _cpu(run: Callable[[], Awaitable[object]]) -> float:
    started = time.process_time()
    await run()
    return time.process_time() - started
