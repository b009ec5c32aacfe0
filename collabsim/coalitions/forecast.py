"""Forecasts the size of a sweep before it runs: runs, calls, generations and tokens.

In: a planned sweep. Out: the exact number of runs, and upper bounds of calls, generations and tokens. Generations are far
fewer than calls where answers do not depend on the coalition: a seat's opening answer is made once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from collabsim.nodes.asking import Ask, opening
from collabsim.system.topology import ask_nodes

if TYPE_CHECKING:
    from collabsim.coalitions.sweep import Sweep
    from collabsim.system.system import System

APPLICATION = "application"
"""Family of the systems that are made from an existing graph."""


def forecast(sweep: Sweep) -> dict[str, int | None]:
    """Counts of a sweep that starts from nothing; what the store and the run folder hold comes off them.

    None where it cannot be known: a foreign graph does not declare its calls.
    """
    system, plan = sweep.system, sweep.plan
    if system.protocol.family == APPLICATION:
        runs = {"coalition_runs": len(plan), "own_answer_runs": len(sweep.runs.seats) * len(sweep.task.items)}
        unknown = dict.fromkeys(("calls_at_most", "generations_at_most", "completion_tokens_at_most"))
        dev = {"dev_runs": len(system.pool) * len(sweep.task.dev)}
        return {"items": len(sweep.task.items), "players": len(sweep.players), **runs, **dev, **unknown}
    per_run = calls_per_run(system)
    openings = _openings(system)
    sizes: dict[int, tuple[int, int]] = {}
    calls = later = 0
    for _, mask in plan:
        if mask not in sizes:
            present = sweep.players.present(mask) if system.replacement is None else system.everyone
            bound = per_run(present)
            sizes[mask] = bound, max(bound - sum(openings.get(seat, 0) for seat in present), 0)
        calls += sizes[mask][0]
        later += sizes[mask][1]
    own = len(system.pool) * len(sweep.task.items)
    replaced = 0 if system.replacement is None else own  # the replacement's own opening answer in every seat
    fitting = len(system.pool) * len(sweep.task.dev)
    fit_calls = system.protocol.fit_calls
    if fit_calls is not None:
        later += (more := fit_calls(len(system.pool), **system.options) * len(sweep.task.dev))
        calls += more
    seats = [*system.pool.values(), *system.helpers.values()]
    generations = min(own + replaced + later + fitting, calls + own + fitting)
    return {
        "items": len(sweep.task.items),
        "players": len(sweep.players),
        "coalition_runs": len(plan),
        "own_answer_runs": own,
        "dev_runs": fitting,
        "calls_at_most": calls + own + fitting,
        "generations_at_most": generations,
        "completion_tokens_at_most": generations * max(seat.sampling.max_tokens for seat in seats),
    }


def calls_per_run(system: System) -> Callable[[frozenset[str]], int]:
    """Present seats -> upper bound of the calls of one run: what the protocol declares, else what its graph shows."""
    declared = system.protocol.calls
    if declared is not None:
        return lambda present: int(declared(len(present), **system.options))
    nodes = list(ask_nodes(system.graph.builder).values())
    helpers = frozenset(system.helpers)

    def counted(present: frozenset[str]) -> int:
        speakers = present | helpers
        return sum(1 for node in nodes if not isinstance(node, Ask) or node.seat in speakers)

    return counted


def _openings(system: System) -> dict[str, int]:
    """Seat to its nodes that ask for the opening answer."""
    openings: dict[str, int] = {}
    for node in ask_nodes(system.graph.builder).values():
        if isinstance(node, Ask) and node.prompt is opening and node.draw == 0:
            openings[node.seat] = 1
    return openings
