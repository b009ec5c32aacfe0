"""Structured: seats pass their answers along a directed graph; each reads the answers that reach it, and revises its own.

The shapes are `chain`, `tree` and `star` (towards the first place, which answers for all), `ring` and `complete` (which
go round, and end in a vote), a matrix (row i, column j: place i hears place j), or names (`{editor: [solver, critic]}`).
Places of a shape or a matrix are filled in the run's own order, so that no seat gains from its place; names stay put.
An absent seat is contracted: whoever heard it hears those whom it heard. With places the last ones stay empty, so a
coalition of k has the shape of k.

Everyone answers first. Then, in each round, a seat that hears something new revises; where the graph has no cycle one
round carries every answer to the end, in order. The final output is a vote among the seats that nobody hears (among all,
where everyone is heard). Graphs are networkx ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeAlias

import networkx as nx
from langgraph.graph import END, StateGraph
from pydantic import Field

from collabsim.context import RunContext
from collabsim.episode import Reply
from collabsim.errors import ConfigError
from collabsim.nodes.asking import ask
from collabsim.nodes.current_run import context_of
from collabsim.nodes.quoting import check_placeholder, fill, quote_all, with_answers
from collabsim.nodes.state import Replies, State, last_replies, slot
from collabsim.nodes.voting import plurality, share
from collabsim.playground import playground_graph
from collabsim.protocols import protocol
from collabsim.request import Message, Messages, with_text
from collabsim.seeds import canonical_json

from .debate import REVISE
from .rounds import add_round, join, new_graph

Shape = Literal["chain", "tree", "star", "ring", "complete"]
Structure: TypeAlias = Shape | list[list[Annotated[int, Field(ge=0, le=1)]]] | dict[str, list[str]]
Place: TypeAlias = int | str
"""A number, filled by the run's order, or a seat's own name."""


def hearing(structure: Structure, size: int) -> nx.DiGraph:
    """The graph of replies: an edge from each place to the places that read it, over `size` places or the named seats."""
    graph = nx.DiGraph()
    if isinstance(structure, Mapping):
        graph.add_nodes_from(structure)
        graph.add_edges_from((heard, hearer) for hearer, all_heard in structure.items() for heard in all_heard)
        return graph
    graph.add_nodes_from(range(size))
    if isinstance(structure, str):
        graph.add_edges_from(_edges(structure, size))
    else:
        graph.add_edges_from((j, i) for i, row in enumerate(structure) for j, heard in enumerate(row) if heard)
    return graph


def _edges(shape: Shape, size: int) -> list[tuple[int, int]]:
    if shape == "complete":
        return [(i, j) for i in range(size) for j in range(size) if i != j]
    if shape == "ring":
        return [(i, (i - 1) % size) for i in range(size)] if size > 1 else []
    if shape == "chain":
        return [(i, i - 1) for i in range(1, size)]
    return [(i, (i - 1) // 2 if shape == "tree" else 0) for i in range(1, size)]


def contracted(graph: nx.DiGraph, seated: frozenset[Place]) -> nx.DiGraph:
    """The graph over `seated`: each other node is taken out, and those who heard it hear those whom it heard."""
    remaining = graph.copy()
    for gone in graph.nodes - seated:
        remaining.add_edges_from((before, after) for before in remaining.pred[gone] for after in remaining.succ[gone])
        remaining.remove_node(gone)
    remaining.remove_edges_from(list(nx.selfloop_edges(remaining)))
    return remaining


@lru_cache(maxsize=1 << 12)
def _contracted(key: str, size: int, seated: frozenset[Place]) -> nx.DiGraph:
    return contracted(hearing(json.loads(key), size), seated)


@dataclass(frozen=True, slots=True)
class Topology:
    """A structure over a number of seats, and its graph in a run."""

    structure: str
    """As canonical JSON: an option's value cannot be hashed."""
    size: int

    @property
    def shape(self) -> nx.DiGraph:
        """The graph when all seats are present."""
        return hearing(json.loads(self.structure), self.size)

    def over(self, state: State, run: RunContext) -> tuple[nx.DiGraph, dict[Place, str]]:
        """The contracted graph of a run, and the seat at each of its places, in the run's order.

        A seat that gave no opening answer has nothing to pass on and is contracted like an absent one.
        """
        answered = [seat for seat in run.order if _answered(state, run, seat)]
        by_name = self.structure.startswith("{")
        seats: dict[Place, str] = {seat if by_name else place: seat for place, seat in enumerate(answered)}
        return _contracted(self.structure, self.size, frozenset(seats)), seats


def _answered(state: State, run: RunContext, seat: str) -> bool:
    reply = state.get("replies", {}).get(slot(seat, 0))
    return reply is not None and run.answers.extract(reply.text, reply.finish) is not None


def last_by(state: State, seat: str, draw: int) -> Reply:
    """The last reply of a seat up to a round; everyone who is at a place has an opening one."""
    replies = state.get("replies", {})
    return next(replies[place] for r in range(draw, -1, -1) if (place := slot(seat, r)) in replies)


@dataclass(frozen=True, slots=True)
class Listen:
    """The node of one place in one round: whoever is there hears the others and revises."""

    node: str
    place: Place
    draw: int
    """The round, from 1."""
    topology: Topology
    circle: frozenset[Place]
    """Places on a cycle with this one: they are heard as of the round before, all others as of this one."""
    text: str
    quote_limit: int

    def __post_init__(self) -> None:
        check_placeholder(self.text, "answers")

    async def __call__(self, state: State, runtime: Any) -> dict[str, Replies] | None:
        """Ask whoever is at the place; nothing when it is empty, or hears nothing new or no answer."""
        run = context_of(runtime)
        graph, seats = self.topology.over(state, run)
        if self.place not in seats:
            return None
        rounds_heard = {
            seats[place]: self.draw - (place in self.circle) for place in seats if graph.has_edge(place, self.place)
        }
        replies = state.get("replies", {})
        news = self.draw == 1 or any(slot(seat, draw) in replies for seat, draw in rounds_heard.items())
        answers = with_answers({seat: last_by(state, seat, draw) for seat, draw in rounds_heard.items()}, run)
        if not news or not answers:
            return None
        seat = seats[self.place]
        messages = self.prompt(run, last_by(state, seat, self.draw - 1), answers)
        reply = await ask(runtime, seat, messages, draw=self.draw, node=self.node)
        return {"replies": {slot(seat, self.draw): reply}} if isinstance(reply, Reply) else None

    def prompt(self, run: RunContext, own: Reply, answers: Replies) -> Messages:
        """The question, the seat's own last answer, and the answers that it hears."""
        text = fill(self.text, answers=quote_all(answers.values(), limit=self.quote_limit))
        own_turn = (Message("assistant", own.text),) if own.text.strip() else ()
        return with_text((*run.item.messages, *own_turn), text)


def check_structure(structure: Structure, seats: Sequence[str]) -> None:
    """Raises `ConfigError` for a matrix of another size than the pool, and for names that are no seats."""
    if isinstance(structure, Mapping):
        names = {*structure, *(heard for all_heard in structure.values() for heard in all_heard)}
        if not names <= set(seats):
            raise ConfigError(
                f"structure: expected names of seats {sorted(seats)}, got {sorted(names - set(seats))}; mend the names"
            )
    elif not isinstance(structure, str) and {len(structure), *map(len, structure)} != {len(seats)}:
        raise ConfigError(
            f"structure: expected a matrix of {len(seats)} rows and columns, one for each seat, got rows of "
            f"{[len(row) for row in structure]}"
        )


def end_at_sinks(graph: StateGraph[Any, Any, Any, Any], topology: Topology, after: Sequence[str]) -> None:
    """The most frequent of the last answers of the places that nobody hears (of all, where there are none) is final."""

    async def vote(state: State, runtime: Any) -> dict[str, Any]:
        run = context_of(runtime)
        last = last_replies(state, run)
        if run.alone:
            return {"final": share(list(last.values()))}
        among, seats = topology.over(state, run)
        ends = [seat for place, seat in seats.items() if not among.succ[place]] or list(seats.values())
        return {"final": plurality([last[seat] for seat in ends], run.answers)}

    graph.add_node("vote", vote)
    join(graph, after, "vote")
    graph.add_edge("vote", END)


def calls(present: int, *, structure: Structure, rounds: int, **_: Any) -> int:
    """Upper bound of the calls of one run: every answer, and one more for each time that a place hears something new."""
    listening = present if present > 1 and rounds > 1 else 0
    if structure in ("ring", "complete") or not isinstance(structure, str):
        return present + listening * (rounds - 1)
    return present + {"chain": listening - 1, "tree": listening // 2, "star": 1}[structure] * (listening > 0)


@protocol(
    family="text",
    absent="an absent seat is contracted: those who heard it hear those whom it heard",
    calls=calls,
)
def structured(
    seats: Sequence[str],
    *,
    structure: Structure = "chain",
    rounds: Annotated[int, Field(ge=1)] = 2,
    quote_limit: Annotated[int, Field(ge=20)] = 2000,
    revise: str = REVISE,
) -> StateGraph[Any, Any, Any, Any]:
    """Seats answer, then revise by what they hear along a chain, tree, star, ring, complete graph, matrix or names.

    `rounds` counts the opening answers. Raises `ConfigError` for a structure that does not fit the seats.
    """
    check_structure(structure, seats)
    graph = new_graph()
    if isinstance(structure, Mapping):
        structure = {seat: structure.get(seat, []) for seat in seats}
    topology = Topology(canonical_json(structure), len(seats))
    nodes = add_round(graph, seats)
    nodes += add_listening(graph, topology, nodes, rounds, text=revise, quote_limit=quote_limit)
    end_at_sinks(graph, topology, nodes)
    return graph


def add_listening(
    graph: StateGraph[Any, Any, Any, Any], topology: Topology, opening: Sequence[str], rounds: int, **wording: Any
) -> list[str]:
    """All rounds after the opening one: in each, places in order of who hears whom, those on one cycle together.

    Returns each place's last node. Places that no cycle leads to have one node: they hear nothing new later.
    """
    shape = topology.shape
    circles = [frozenset(circle) for circle in nx.strongly_connected_components(shape)]
    order = [circles[k] for k in nx.topological_sort(nx.condensation(shape, circles))]
    turning = {place for circle in circles if len(circle) > 1 for place in circle}
    turning.update(*(nx.descendants(shape, place) for place in turning))
    last: dict[Place, str] = {}
    for draw in range(1, rounds):
        for circle in order:
            before = sorted({last[place] for member in circle for place in shape.pred[member] if place in last})
            for place in sorted(circle & turning if draw > 1 else circle):
                if not shape.pred[place]:
                    continue
                node = slot(place if isinstance(place, str) else f"place-{place}", draw)
                on_cycle = circle if len(circle) > 1 else frozenset()
                graph.add_node(node, Listen(node, place, draw, topology, on_cycle, **wording))
                join(graph, before or opening, node)
                last[place] = node
    return list(last.values())


graph = playground_graph(structured)
