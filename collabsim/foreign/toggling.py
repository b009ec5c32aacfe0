"""A copy of a foreign graph whose nodes can be off: one compile, then toggled by the run context.

In: a LangGraph builder and the absences of its nodes. Out: a compiled graph that does what the original does while
everything is on. The original stays as it is: the builder is cloned, the runnable in each node's spec is replaced, and
graphs that are nodes are cloned the same way, their nodes named `team/researcher`.

Left out on purpose: LangGraph's cache (the run context is in no key of it, so one coalition would get another's answers),
its retries and error handlers (a failed call fails the run, and is tried again on resume; it never acts as absence),
interrupts, and, unless asked for, checkpointers.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph import START
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from collabsim.context import RunContext
from collabsim.errors import CollabsimError, ProtocolError
from collabsim.foreign.absence import Absence, Builder, command_targets, leads_somewhere, way_on_missing
from collabsim.nodes.current_run import CURRENT_RUN

SEPARATOR = "/"


class SeatOff(BaseException):
    """A node asked a seat that is off. Not an `Exception`, so that applications do not catch it."""

    def __init__(self, seat: str) -> None:
        super().__init__(seat)
        self.seat = seat


class _AsyncOnly(Runnable[Any, Any]):
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: ARG002
        """Refuse: measured runs are asynchronous."""
        raise ProtocolError("expected `ainvoke`: the graph of a system made from an application runs asynchronously")


class ToggledNode(_AsyncOnly):
    """A node of a foreign graph that abstains when it is off, or when a seat that it asks is."""

    def __init__(
        self, path: str, original: Runnable[Any, Any], absence: Absence, *, leads_on: bool, targets: Any
    ) -> None:
        self.path, self.original, self.absence = path, original, absence
        self.leads_on = leads_on
        """Whether edges lead on from this node, whatever it returns."""
        self.declared: bool = bool(targets)
        """Whether the node declares that it goes on by `Command`, and nothing else leads on."""
        self._went_on = self._stopped = False

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """The node's update, or that of its absence. Raises what the node raises."""
        run = CURRENT_RUN.get()
        if run is not None and self.path in run.off:
            return await self._abstain(input, config, run)
        try:
            update = await self.original.ainvoke(input, config, **kwargs)
        except SeatOff:
            if run is None or (self.declared and not self.absence.routes):
                raise
            self._stopped = True
            self._check_way_on()
            return await self._abstain(input, config, run)
        if not self._went_on and _goes_on(update):
            self._went_on = True
        self._check_way_on()
        return update

    def _check_way_on(self) -> None:
        """Refuse a node that goes on by a `Command` which it does not declare, when it may be off or was."""
        if self._went_on and (self.absence.may_be_off or self._stopped) and not (self.leads_on or self.absence.routes):
            raise ProtocolError(way_on_missing(self.path, self.absence.word))

    async def _abstain(self, input: Any, config: RunnableConfig | None, run: RunContext) -> Any:
        run.recorder.abstained.add(self.path)
        return await self.absence.act(input, config or {})


class ToggledBranch(_AsyncOnly):
    """The choice that a conditional edge makes. It must be able to choose when its node was off."""

    def __init__(self, path: str, original: Runnable[Any, Any]) -> None:
        self.path, self.original = path, original

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """The chosen target. Raises `ProtocolError` when there is none because the node before it abstained."""
        run = CURRENT_RUN.get()
        abstained = run is not None and self.path in run.recorder.abstained
        try:
            target = await self.original.ainvoke(input, config, **kwargs)
        except CollabsimError:
            raise
        except Exception as error:
            if abstained:
                raise ProtocolError(self._cannot_choose(f"{type(error).__name__}: {error}")) from error
            raise
        if abstained and (target is None or (isinstance(target, list | tuple) and not target)):
            raise ProtocolError(self._cannot_choose(f"it returned {target!r}"))
        return target

    def _cannot_choose(self, why: str) -> str:
        return (
            f"node {self.path!r} is off, and the conditional edge after it cannot choose without its update ({why}); "
            f"give it a value: absent={{{self.path!r}: {{...an update...}}}}, 'goto:NODE' or a function"
        )


def toggled(builder: Builder, absence: Callable[[Builder, str, str], Absence], prefix: str = "") -> Builder:
    """A clone of `builder` whose nodes and conditional edges can be toggled; compile it once.

    `absence(builder, node, path)` says how a node abstains. Raises what `absence` raises.
    """
    clone = copy.copy(builder)
    clone.compiled = False
    clone._node_defaults = type(builder._node_defaults)()
    clone.edges, clone.waiting_edges = set(builder.edges), set(builder.waiting_edges)
    clone.nodes = {}
    for name, spec in builder.nodes.items():
        path = prefix + name
        runnable = spec.runnable
        if isinstance(runnable, CompiledStateGraph):
            runnable = compiled(runnable, toggled(runnable.builder, absence, path + SEPARATOR))
        if not spec.is_error_handler:
            leads_on, targets = leads_somewhere(builder, name), command_targets(builder, name)
            runnable = ToggledNode(path, runnable, absence(builder, name, path), leads_on=leads_on, targets=targets)
        clone.nodes[name] = replace(
            spec, runnable=runnable, retry_policy=None, cache_policy=None, error_handler_node=None
        )
    clone.branches = defaultdict(dict)
    for start, branches in builder.branches.items():
        for name, branch in branches.items():
            path = ToggledBranch(prefix + start, branch.path)
            clone.branches[start][name] = branch._replace(path=path)
    return clone


def compiled(original: Any, clone: Builder, **memory: Any) -> Any:
    """The clone, compiled under the name and with the config of a compiled original (None: a bare builder)."""
    graph = clone.compile(name=None if original is None else original.name, **memory)
    if original is not None:
        graph.config, graph.step_timeout = original.config, original.step_timeout
    return graph


def node_paths(builder: Builder, prefix: str = "") -> Iterator[str]:
    """The names of all nodes a user wrote, those of graphs that are nodes after them as `team/researcher`."""
    for name, spec in builder.nodes.items():
        if spec.is_error_handler or name == START:
            continue
        yield prefix + name
        if isinstance(spec.runnable, CompiledStateGraph):
            yield from node_paths(spec.runnable.builder, prefix + name + SEPARATOR)


def _goes_on(update: Any) -> bool:
    """Whether an update sends the run somewhere."""
    parts = update if isinstance(update, list | tuple) else [update]
    return any(isinstance(part, Command) and part.goto for part in parts)
