"""Guard against collabsim growing slow around LangGraph. `benchmarks/bench_overhead.py` has all protocols and the table."""

import pytest
from collabsim.graphs import debate
from overhead import MOST_TIMES_BARE, bare_graph, measure

TRIES = 3


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["majority_vote", "debate"])
def test_a_run_with_stored_generations_costs_little_more_than_the_bare_graph(protocol):
    ratios = []
    for _ in range(TRIES):  # a busy machine can spoil a measurement, but hardly make one look better
        ratios.append(measure(protocol, items=10, rounds=11).ratio)
        if ratios[-1] <= MOST_TIMES_BARE:
            break
    assert min(ratios) <= MOST_TIMES_BARE


async def test_the_bare_graph_runs_the_same_nodes_as_the_real_one():
    real, bare = [
        [node async for update in graph.astream({}, stream_mode="updates") for node in update]
        for graph in (debate.graph, bare_graph(debate.graph))
    ]
    assert sorted(real) == sorted(bare)
    assert len(bare) == 3 + 3 + 1
