"""How many generations an exact sweep makes, against one generation for every call of every coalition.

A seat's opening answer does not depend on who else is there, so a vote among n members costs n generations an item and
not n * 2^(n-1). What others said changes a prompt: later rounds are shared only where the prompts are equal.
"""

from dataclasses import replace

import pytest
from overhead import sample_items, stored_system
from recording import record

from collabsim import sweep
from collabsim.tasks import Task

ITEMS = 5
SIZES = {"majority_vote": range(3, 9), "debate": range(3, 7), "mixture_of_agents": range(3, 7)}


def exact_sweep(protocol: str, n: int) -> tuple[int, int]:
    """Generations made, and calls of all coalitions (the members' own answers outside of them not counted)."""
    items = tuple(sample_items(ITEMS))
    system = stored_system(protocol, n, items)
    task = Task(name="sums", items=items, dev=(), kind="number")
    cost = sweep(system, task, method="exact").values["cost"]
    assert cost["generated"] == system.store.generated
    return cost["generated"], cost["calls"] - n * ITEMS


def test_minimum_generations(benchmark):
    cells = [(protocol, n) for protocol, sizes in SIZES.items() for n in sizes]
    found = benchmark.pedantic(lambda: [(*cell, *exact_sweep(*cell)) for cell in cells], rounds=1)
    rows = [
        (protocol, n, f"{calls / ITEMS:,.0f}", f"{made / ITEMS:,.1f}", f"{calls / made:.1f}")
        for protocol, n, made, calls in found
    ]
    record(
        "minimum_generations",
        "Generations of an exact sweep",
        ("protocol", "members", "calls an item", "generations an item", "calls a generation"),
        rows,
        f"All 2^n coalitions on {ITEMS} items, simulated members, an empty store. A naive sweep makes every call.",
    )
    for protocol, n, made, calls in found:
        if protocol == "majority_vote":
            assert (made, calls) == (n * ITEMS, n * 2 ** (n - 1) * ITEMS)
        assert made < calls


@pytest.mark.parametrize("protocol", ["debate", "mixture_of_agents"])
def test_a_second_protocol_reuses_the_opening_answers(benchmark, protocol):
    n, items = 4, tuple(sample_items(ITEMS))
    task = Task(name="sums", items=items, dev=(), kind="number")
    vote = stored_system("majority_vote", n, items)

    def both() -> tuple[int, int]:
        alone = stored_system(protocol, n, items)
        sweep(alone, task, method="exact")
        sweep(vote, task, method="exact")
        before = vote.store.generated
        sweep(replace(alone, store=vote.store), task, method="exact")
        return alone.store.generated, vote.store.generated - before

    by_itself, after_the_vote = benchmark.pedantic(both, rounds=1)
    print(f"\n{protocol}: {by_itself} generations by itself, {after_the_vote} after a vote over the same pool")
    assert after_the_vote == by_itself - n * ITEMS
