"""Graph router: a question is placed among the dev items it resembles, and the seat that did best around there answers.

Dev items are the nodes of a networkx graph, each tied to its nearest ones by similarity. A new question is tied in the same
way, and a random walk that starts (and keeps restarting) at it says how much each dev item counts: the personalised
PageRank (Page et al. 1999; Haveliwala 2002), which also reaches items that resemble it only through others. A seat's
prediction is its dev score under these weights. A question that resembles nothing gets plain dev scores. The coalition
only masks the choice, so one fit serves all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import networkx as nx
from langgraph.graph import StateGraph
from pydantic import Field

from collabsim.context import RunContext
from collabsim.item import Item
from collabsim.playground import playground_graph
from collabsim.protocols import protocol
from collabsim.system.execute import CONCURRENCY
from collabsim.system.fitting import dev_outcomes
from collabsim.system.system import System

from .features import Vector, dot, fit_vectors, question_vector
from .routing import routed_graph

QUESTION = -1
"""The node of the new question; dev items are 0, 1, 2 and so on."""
MOST_STEPS = 10_000
"""Of the power iteration; a slow restart needs many."""
MOST_REMEMBERED = 1 << 12
_REMEMBERED: dict[tuple[int, str, int, float], tuple[Mapping[str, Any], dict[str, float]]] = {}
# Coalitions of one item share this result. By object, since fitted data cannot be hashed; an entry holds the object
# whose id is in its key, so that no other object can have it while it lives.


@dataclass(frozen=True, slots=True)
class PredictByNeighbours:
    """Score of each seat on the dev items around the run's question, weighted by how near they are."""

    encoder: str | None
    neighbours: int
    restart: float

    def __call__(self, run: RunContext) -> Mapping[str, float]:
        """By seat, in [0, 1]; empty where nothing was fitted."""
        if not run.fitted:
            return {}
        key = (id(run.fitted), run.item.id, self.neighbours, self.restart)
        if key not in _REMEMBERED:
            if len(_REMEMBERED) >= MOST_REMEMBERED:
                _REMEMBERED.clear()
            weights = nearness(question_vector(run, self.encoder), run.fitted, self.neighbours, self.restart)
            _REMEMBERED[key] = run.fitted, weighted_scores(weights, run.fitted["outcomes"])
        return _REMEMBERED[key][1]


def similarity_graph(vectors: Sequence[Vector], neighbours: int) -> nx.Graph:
    """Items 0, 1, ... each tied to its most similar ones; the weight of an edge is the cosine, if it is above 0."""
    graph = nx.Graph()
    graph.add_nodes_from(range(len(vectors)))
    for place, one in enumerate(vectors):
        tie(graph, place, one, {other: vectors[other] for other in range(len(vectors)) if other != place}, neighbours)
    return graph


def tie(graph: nx.Graph, node: int, one: Vector, others: Mapping[int, Vector], neighbours: int) -> None:
    """Edges from `node` to the `neighbours` most similar of `others` (all that tie with the last of them)."""
    cosines = {other: round(dot(one, theirs), 12) for other, theirs in others.items()}
    least = max([0.0, *sorted(cosines.values(), reverse=True)[neighbours - 1 : neighbours]])
    for other, cosine in cosines.items():
        if cosine > 0 and cosine >= least:
            graph.add_edge(node, other, weight=cosine)


def nearness(question: Vector, fitted: Mapping[str, Any], neighbours: int, restart: float) -> list[float]:
    """The weight of each item for a question: its personalised PageRank; all 0 when the question resembles none."""
    vectors: Sequence[Vector] = fitted["vectors"]
    graph = nx.Graph()
    graph.add_nodes_from([QUESTION, *range(len(vectors))])
    graph.add_weighted_edges_from(fitted["edges"])
    tie(graph, QUESTION, question, dict(enumerate(vectors)), neighbours)
    ranks = nx.pagerank(graph, alpha=1 - restart, personalization={QUESTION: 1.0}, max_iter=MOST_STEPS)
    return [ranks[place] for place in range(len(vectors))]


def weighted_scores(weights: Sequence[float], outcomes: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Mean score of each seat under the weights; the plain mean when all of them are 0."""
    total = math.fsum(weights)
    used = weights if total > 0 else [1.0] * len(weights)
    return {
        seat: math.fsum(weight * score for weight, score in zip(used, scores, strict=True)) / math.fsum(used)
        for seat, scores in outcomes.items()
    }


async def fit_neighbours(
    system: System, dev_items: Sequence[Item], seed: int, *, concurrency: int = CONCURRENCY
) -> dict[str, Any]:
    """`fit`: the graph of the dev items, their features, and every seat's scores on them."""
    items = sorted(dev_items, key=lambda item: item.id)
    features, vectors = fit_vectors(items, system.options["encoder"])
    graph = similarity_graph(vectors, system.options["neighbours"])
    return {
        "features": features,
        "items": [item.id for item in items],
        "vectors": vectors,
        "edges": sorted([min(i, j), max(i, j), weight] for i, j, weight in graph.edges.data("weight")),
        "outcomes": await dev_outcomes(system, items, seed, concurrency=concurrency),
    }


@protocol(
    family="routing",
    needs=("dev",),
    absent="an absent seat is never chosen; predictions are made once for all seats and masked",
    calls=lambda present, **_: min(present, 1),
    fit=fit_neighbours,
)
def graph_router(
    seats: Sequence[str],
    *,
    neighbours: Annotated[int, Field(ge=1)] = 5,
    restart: Annotated[float, Field(gt=0, lt=1)] = 0.5,
    encoder: str | None = None,
) -> StateGraph[Any, Any, Any, Any]:
    """The seat answers that did best on the dev items around the question in a graph of similar items.

    `restart`: how soon the walk over the graph returns to the question; near 1 only direct neighbours count.
    `encoder`: a local model (hub id, folder, GGUF) whose hidden states are compared, in place of TF-IDF.
    """
    return routed_graph(seats, PredictByNeighbours(encoder, neighbours, restart))


graph = playground_graph(graph_router)
