"""A protocol's graph as a networkx graph: step limits, nodes that ask, nodes without a path to the end.

In: a LangGraph builder. Out: networkx graphs, numbers and names of nodes. No model is needed.
"""

from __future__ import annotations

from typing import Any

import networkx as nx
from langgraph.graph import END, START

from collabsim.nodes.asking import Ask, AskRole

CYCLIC_STEP_LIMIT = 100


def topology(builder: Any) -> nx.DiGraph:
    """Nodes and edges of a builder; a branch whose targets are unknown may go anywhere."""
    graph = nx.DiGraph()
    graph.add_nodes_from([START, END, *builder.nodes])
    graph.add_edges_from(builder.edges)
    for sources, target in builder.waiting_edges:
        graph.add_edges_from((source, target) for source in sources)
    for source, branches in builder.branches.items():
        for branch in branches.values():
            targets = branch.ends.values() if branch.ends else [*builder.nodes, END]
            graph.add_edges_from((source, target) for target in targets)
    for name, spec in builder.nodes.items():
        graph.add_edges_from((name, target) for target in spec.ends or ())
    return graph


def step_limit(builder: Any) -> int:
    """Supersteps that one run may take: the longest path of an acyclic graph (plus LangGraph's own last tick)."""
    graph = topology(builder)
    if nx.is_directed_acyclic_graph(graph):
        return int(nx.dag_longest_path_length(graph)) + 1
    return CYCLIC_STEP_LIMIT


def ask_nodes(builder: Any) -> dict[str, Ask | AskRole]:
    """The ready ask nodes of a graph, by node name."""
    return {
        name: node for name, nodes in _callables(builder).items() for node in nodes if isinstance(node, Ask | AskRole)
    }


def opaque_nodes(builder: Any) -> list[str]:
    """Nodes that may ask anybody: neither ready ask nodes nor marked by `asking.computation`."""
    return [
        name
        for name, nodes in _callables(builder).items()
        if not any(isinstance(node, Ask | AskRole) or getattr(node, "makes_no_call", False) for node in nodes)
    ]


def _callables(builder: Any) -> dict[str, list[Any]]:
    """The functions that each node calls; none where it is a graph or another runnable."""
    return {
        name: [node for part in ("afunc", "func") if (node := getattr(spec.runnable, part, None)) is not None]
        for name, spec in builder.nodes.items()
    }


def stranded(builder: Any) -> list[str]:
    """Nodes from which no path leads to the end: they cannot change the output."""
    graph = topology(builder)
    leads_to_end = nx.ancestors(graph, END)
    return sorted(name for name in builder.nodes if name not in leads_to_end)
