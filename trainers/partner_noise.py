"""Partner noise: the samples of the frozen seats that the runs of a group meet.

In: a mode, the number of runs and of partner draws. Out: the (run, partner draw) pairs to be made, and how seeds tell them
apart. Partner calls go through the generation store: equal prompts with equal seeds are generated once, whatever the mode.

`shared`: all runs of a group meet one partner draw. `independent`: each run meets its own. `crossed`: every sample of the
learner is scored against all K partner draws and has the mean of these outcomes as reward; this needs a learner whose
prompts do not depend on its partners, and is cheap where nobody reads its reply (a vote).
Seeds hold the visit of the item, so that a later visit meets other partners' samples and other samples of the learner.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import networkx as nx

from collabsim.errors import ConfigError
from collabsim.nodes.asking import Ask, AskRole
from collabsim.roles import as_names
from collabsim.seeds import derive_seed
from collabsim.system.system import System
from collabsim.system.topology import ask_nodes, opaque_nodes, topology

from .objectives import Noise


class Pair(NamedTuple):
    """One run of the system in a group."""

    sample: int
    """Number of the learner's sample, 0 to G - 1."""
    draw: int
    """Number of the partner draw."""


def pairs(noise: Noise, group: int, draws: int) -> list[Pair]:
    """The runs of one group: G of them, or G * K when crossed."""
    if noise == "crossed":
        return [Pair(sample, draw) for sample in range(group) for draw in range(draws)]
    return [Pair(sample, sample if noise == "independent" else 0) for sample in range(group)]


def visit_seed(seed: int, visit: int, attempt: int = 0) -> int:
    """The run seed of all runs of one visit of an item; `attempt` counts groups drawn again for lack of a gradient."""
    return derive_seed("train", seed, visit, attempt)


def evaluation_seed(seed: int) -> int:
    """The run seed of evaluations: always the same, so that two versions of a learner meet the same partners."""
    return derive_seed("evaluate", seed)


def default_noise(system: System, learner: str) -> Noise:
    """`crossed` where the learner and its partners are known never to read each other in one run, else `shared`.

    Nodes that ask unseen (those of an application, or with `ask` in their code) may read anybody.
    """
    reads, is_read = dependencies(system, learner)
    return "shared" if reads or is_read or opaque_nodes(system.graph.builder) else "crossed"


def check_noise(noise: Noise, system: System, learner: str) -> None:
    """Raises `ConfigError` when the learner's prompts depend on its partners and the noise is to be crossed."""
    if noise == "crossed" and dependencies(system, learner)[0]:
        raise ConfigError(
            f"train.partner_noise: seat {learner!r} reads what its partners said, so its samples cannot be crossed with "
            "several partner draws; set partner_noise: shared"
        )


def dependencies(system: System, learner: str) -> tuple[bool, bool]:
    """Whether the learner may read its partners, and whether they may read (or be chosen by) it.

    Read off the graph's paths between the nodes that ask; a node that is no ready `Ask` counts as computation. A
    learner that is asked twice along a path with a partner in between counts as reading.
    """
    graph = topology(system.graph.builder)
    learner_nodes, partner_nodes = set(), set()
    for name, node in ask_nodes(system.graph.builder).items():
        holders = _holders(system, node)
        if learner in holders:
            learner_nodes.add(name)
        if holders - {learner}:
            partner_nodes.add(name)
    return _leads(graph, partner_nodes, learner_nodes), _leads(graph, learner_nodes, partner_nodes)


def _holders(system: System, node: Ask | AskRole) -> set[str]:
    """All seats that a node may ask."""
    if isinstance(node, Ask):
        return {node.seat}
    wished = as_names(system.roles.get(node.role, ()))
    return set(wished[:1]) or set(system.pool)  # with all seats present the first wish holds


def _leads(graph: nx.DiGraph, sources: Iterable[str], targets: set[str]) -> bool:
    return any(targets & nx.descendants(graph, source) for source in sources)
