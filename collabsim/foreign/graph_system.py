"""A system made from an existing LangGraph application: `from_graph`.

In: a `StateGraph` or a compiled graph, the names of players among its nodes and seats, the rules by which absent ones
abstain. Out: a system like any other, which sweeps, reports and tests take. The application itself is never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from collabsim.arguments import checked
from collabsim.context import Limits, RunContext
from collabsim.episode import Final
from collabsim.errors import ConfigError
from collabsim.foreign.absence import Absence, Builder, absence_of, word_of
from collabsim.foreign.application import Application, last_message, messages_input, off_path
from collabsim.foreign.switches import Player, rules_of, switches_of
from collabsim.foreign.toggling import SEPARATOR, compiled, node_paths, toggled
from collabsim.item import Item
from collabsim.pool import Pool, as_pool
from collabsim.protocols import Protocol
from collabsim.seeds import digest
from collabsim.store import GenerationStore
from collabsim.system import running
from collabsim.system.system import System
from collabsim.system.topology import CYCLIC_STEP_LIMIT, step_limit

if TYPE_CHECKING:
    from collabsim.pool import Members

ABSTAINING = "an absent node runs as a step and abstains as `absent` says; the nodes that ask an absent seat abstain"
MEMORY = ("checkpointer", "store")


@dataclass(frozen=True, eq=False, kw_only=True)
class GraphSystem(System):
    """An application, its players, and how they abstain. Made by `from_graph`."""

    application: Application
    switches: Mapping[str, Player]
    """Player name to what it switches."""
    absences: Mapping[str, Absence]
    """Rule by which every node abstains, by path."""
    stand_ins: Mapping[str, Any] = field(default_factory=dict)
    """Replies in the place of seats that are off."""
    revision: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        nodes = [name for name, player in self.switches.items() if player.kind == "node"]
        if self.absent != "remove" and nodes:
            raise ConfigError(
                f"absent: {self.absent!r} puts a model in a seat, and the players {nodes} are nodes; "
                "say per node what is done in its place"
            )

    @property
    def graph(self) -> Any:
        """The toggled application."""
        return self.application.graph

    @property
    def step_limit(self) -> int:
        """Supersteps that a run may take."""
        return self.application.limit

    @property
    def players(self) -> tuple[str, ...]:
        """Names of the nodes and seats that coalitions switch."""
        return tuple(self.switches)

    @property
    def own_answers(self) -> dict[str, tuple[str, ...]]:
        """Player to the seats whose own answers are its individual strength: none for a node."""
        return {name: (p.target,) if p.kind == "seat" else () for name, p in self.switches.items()}

    @cached_property
    def off_path(self) -> tuple[str, ...]:
        """Players on no path from the start to the output."""
        stranded = set(off_path(self.application.builder))
        return tuple(
            name for name, p in self.switches.items() if p.kind == "node" and p.target.split(SEPARATOR)[0] in stranded
        )

    @cached_property
    def identity(self) -> str:
        """Content hash of everything that a run's outcome may depend on, as far as it can be seen from outside."""
        return digest(
            {
                "application": [self.application.name, self.revision, _shape(self.application.builder)],
                "players": {name: list(player) for name, player in self.switches.items()},
                "absent": {path: absence.word for path, absence in self.absences.items()},
                "stand_ins": {seat: word_of(rule) for seat, rule in self.stand_ins.items()},
                "read": [word_of(self.application.input), word_of(self.application.output)],
                "limit": [self.application.limit, self.application.on_limit],
                "system": super().identity,
            }
        )

    def meanings(self) -> dict[str, Any]:
        """The meaning of the numbers, for reports."""
        switched = {p.target: self.absences[p.target].word for p in self.switches.values() if p.kind == "node"}
        return {
            **super().meanings(),
            "floor": "v(empty): outcome of the application with every player off",
            "alone": "floor" if self.alone == "floor" else "graph",
            "abstaining": ABSTAINING,
            "absent_nodes": switched,
            "off_path": list(self.off_path),
        }

    def _context(self, item: Item, present: frozenset[str], *how: Any) -> RunContext:
        off = [self.switches[name] for name in self.players if name not in present]
        seats_off = {player.target for player in off if player.kind == "seat"}
        run = running.context(self, item, self.everyone - seats_off, *how)
        nodes_off = frozenset(player.target for player in off if player.kind == "node")
        return replace(run, off=nodes_off, stand_ins=self.stand_ins)

    async def _final(self, run: RunContext) -> Final:
        return await self.application.final(run)


@checked(players="list names of nodes and seats", absent="say per node or seat what is done in its place")
def from_graph(
    app: Any,
    pool: Members | None = None,
    *,
    players: Sequence[str] | None = None,
    output: Callable[[Any], Any] | None = None,
    input: Callable[[Any], Any] | None = None,
    absent: Mapping[str, Any] | None = None,
    name: str | None = None,
    revision: str = "",
    recursion_limit: int | None = None,
    on_limit: Literal["no_answer", "fail"] = "no_answer",
    context: Any = None,
    config: Mapping[str, Any] | None = None,
    memory: bool = False,
    helpers: Members | None = None,
    store: GenerationStore | None = None,
    limits: Limits | None = None,
) -> GraphSystem:
    """A system whose players are nodes (or seats) of an existing LangGraph application.

    `app` is a `StateGraph` or a compiled one and stays as it is; `pool` fills its `SeatModel`s. `players`: nodes (`team/a`
    inside a node that is a graph) and seats; None: every node. `input`: item's view -> first state; None: its messages.
    `output`: final state -> text or ((text, weight), ...); None: the last AI message. `absent`: node -> `skip`, `pass`,
    `goto:NODE`, an update, a `Command` or a function; seat -> what is said in its place. `memory`: use the application's
    checkpointer and store, one thread a run. Raises `ConfigError` for unknown names and for a node without a way on.
    """
    builder, original = _builder(app)
    pool = as_pool(pool or Pool())
    paths = list(node_paths(builder))
    switches = switches_of(players, paths, pool)
    rules, stand_ins = rules_of(absent or {}, paths, pool)
    _check_settings(original, on_limit, recursion_limit, memory)
    clone, absences = _toggle(builder, rules, {p.target for p in switches.values() if p.kind == "node"})
    memory_parts = {part: getattr(original, part) for part in MEMORY if memory and original is not None}
    title = name or (original.name if original is not None and original.name != "LangGraph" else "application")
    application = Application(
        name=title,
        graph=compiled(original, clone, **memory_parts),
        builder=clone,
        input=input or messages_input(builder),
        output=output or last_message(builder),
        limit=recursion_limit or _limit(builder, original),
        on_limit=on_limit,
        context=context,
        config=config or {},
        own_thread=bool(memory_parts.get("checkpointer")),
    )
    return GraphSystem(
        Protocol(build=lambda _seats: clone, name=title, family="application", players=(0, None), absent=ABSTAINING),
        pool,
        helpers=as_pool(helpers or Pool()),
        store=store or GenerationStore(None),
        limits=limits or Limits(),
        application=application,
        switches=switches,
        absences={path: absences[path] for path in paths},
        stand_ins=stand_ins,
        revision=revision,
    )


def _toggle(builder: Builder, rules: Mapping[str, Any], switched: Set[str]) -> tuple[Builder, dict[str, Absence]]:
    """The toggled clone, and how each of its nodes abstains. Raises `ConfigError` for a rule that leaves no way on."""
    absences: dict[str, Absence] = {}

    def absence(level: Builder, node: str, path: str) -> Absence:
        try:
            absences[path] = replace(absence_of(level, node, rules.get(path)), may_be_off=path in switched)
        except ConfigError:
            if path in switched or path in rules:
                raise
            # Never off itself. If it asks a seat that is off, the run fails and says that the node cannot abstain.
            absences[path] = Absence("skip", _nothing, False)
        return absences[path]

    return toggled(builder, absence), absences


def _limit(builder: Builder, original: Any) -> int:
    """Supersteps that a run may take: the application's own limit, else what its graph needs, and never a tight one.

    Graphs that nodes call inside inherit the limit and count for themselves.
    """
    configured = (original.config or {}).get("recursion_limit") if original is not None else None
    return int(configured or max(step_limit(builder), CYCLIC_STEP_LIMIT))


def _check_settings(original: Any, on_limit: str, recursion_limit: int | None, memory: bool) -> None:
    if on_limit not in ("no_answer", "fail"):
        raise ConfigError(f"on_limit: expected 'no_answer' or 'fail', got {on_limit!r}")
    if recursion_limit is not None and recursion_limit < 1:
        raise ConfigError(f"recursion_limit: expected at least 1 step, got {recursion_limit}")
    if memory and original is None:
        raise ConfigError("memory: a StateGraph has no checkpointer and no store; give graph.compile(checkpointer=...)")


async def _nothing(_state: Any, _config: Any) -> None:
    return None


def _builder(app: Any) -> tuple[Builder, Any]:
    """The builder of an application, and the compiled graph when it is one."""
    from langgraph.graph import StateGraph
    from langgraph.graph.state import CompiledStateGraph

    if isinstance(app, CompiledStateGraph):
        return app.builder, app
    if isinstance(app, StateGraph):
        return app, None
    raise ConfigError(
        f"expected a StateGraph or a compiled one (StateGraph.compile(), create_react_agent(...)), "
        f"got {type(app).__name__}; graphs of LangGraph's functional API have no nodes to switch"
    )


def _shape(builder: Builder) -> list[Any]:
    """Nodes and edges of a graph as JSON; the code of nodes is not part of it."""
    branches = [
        [start, name, sorted(map(str, (branch.ends or {}).values()))]
        for start, by_name in builder.branches.items()
        for name, branch in by_name.items()
    ]
    waiting = sorted([sorted(starts), end] for starts, end in builder.waiting_edges)
    return [sorted(node_paths(builder)), sorted(map(list, builder.edges)), waiting, sorted(branches)]
