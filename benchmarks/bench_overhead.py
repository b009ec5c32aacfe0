"""A run with all generations stored costs at most 1.5 times the CPU time of LangGraph running the same graph empty."""

import asyncio
import time

import pytest
from overhead import MOST_TIMES_BARE, PROTOCOLS, bare_graph, measure, sample_items, stored_system
from recording import record

SIZES = (4, 8)


def test_overhead(benchmark):
    found = benchmark.pedantic(lambda: [measure(name, seats=n) for n in SIZES for name in PROTOCOLS], rounds=1)
    rows = [(o.protocol, o.seats, f"{o.bare_ms:.2f}", f"{o.ours_ms:.2f}", f"{o.ratio:.2f}") for o in found]
    record(
        "overhead",
        "CPU time of a run: collabsim against the bare graph",
        ("protocol", "seats", "bare LangGraph, ms", "collabsim, ms", "ratio"),
        rows,
        "All generations are stored. The bare graph has the same nodes and edges; its nodes do nothing. The two take "
        "turns run by run; the ratio is the median over 15 rounds of 20 runs each.",
    )
    assert max(overhead.ratio for overhead in found) <= MOST_TIMES_BARE


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("what", ["bare", "collabsim"])
def test_cpu_time_of_a_run(benchmark, protocol, what):
    """pytest-benchmark's own statistics, one group per protocol."""
    benchmark.group = f"{protocol}, 4 seats"
    items = sample_items(10)
    system = stored_system(protocol, 4, items)
    bare = bare_graph(system.graph)
    with asyncio.Runner() as runner:
        for item in items:
            runner.run(system.arun(item))
        turn = iter(items * 10_000)
        run = (lambda: bare.ainvoke({})) if what == "bare" else (lambda: system.arun(next(turn)))
        benchmark.pedantic(lambda: runner.run(run()), rounds=200, warmup_rounds=20)
