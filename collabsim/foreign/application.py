"""A foreign application, ready to be run: its toggled graph, its input for an item, and the reader of its output.

In: a run context. Out: the final output of one run. An error that would meet every run of a coalition (a node that needs an
update which nobody wrote) is a `ProtocolError` that says what to declare; every other error is left to `running.episode`,
which records it as data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

import networkx as nx
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START

from collabsim.context import RunContext
from collabsim.episode import Final, Output, Reply
from collabsim.errors import ConfigError, ProtocolError
from collabsim.foreign.absence import Builder
from collabsim.foreign.calls import CallWatcher
from collabsim.foreign.toggling import SeatOff
from collabsim.item import ItemView
from collabsim.models.chat.langchain_model import as_reply
from collabsim.nodes.current_run import CURRENT_RUN
from collabsim.system.outcome import as_final
from collabsim.system.topology import topology

ITEM_ID = "item-"
"""Prefix of the ids of messages that belong to the item, not to a reply of the run."""


@dataclass(frozen=True, eq=False)
class Application:
    """An application as a system runs it."""

    name: str
    graph: Any
    """The toggled clone, compiled."""
    builder: Builder
    """The clone's builder."""
    input: Callable[[ItemView], Any]
    output: Callable[[Any], Any]
    limit: int
    """Supersteps that one run may take."""
    on_limit: Literal["no_answer", "fail"] = "no_answer"
    context: Any = None
    """The application's own LangGraph context, the same for every run."""
    config: Mapping[str, Any] = field(default_factory=dict)
    own_thread: bool = False
    """A thread of its own for every run: the application's checkpointer is in use."""

    async def final(self, run: RunContext) -> Final:
        """The final output of one run.

        Raises `ProtocolError` for an application that cannot run without what is off, and what the application raises.
        """
        from langsmith import tracing_context

        token = CURRENT_RUN.set(run)
        try:
            with tracing_context(enabled=False):
                state = await self.graph.ainvoke(self.input(run.item), self._config(run), context=self.context)
        except SeatOff as off:
            raise ProtocolError(_seat_missing(off.seat)) from None
        except GraphRecursionError:
            if self.on_limit == "fail":
                raise
            return ()
        except Exception as error:
            key = _unwritten(error, self.builder.channels)
            if key is None or not (run.off or run.recorder.abstained):
                raise
            raise ProtocolError(_update_missing(key, error, run)) from error
        finally:
            CURRENT_RUN.reset(token)
        return self._read(state)

    def _config(self, run: RunContext) -> Any:
        configurable = dict(self.config.get("configurable", {}))
        if self.own_thread:
            configurable["thread_id"] = f"collabsim-{uuid4()}"
        return {
            **self.config,
            "recursion_limit": self.limit,
            "configurable": configurable,
            "callbacks": [*(self.config.get("callbacks") or ()), CallWatcher(run.recorder)],
        }

    def _read(self, state: Any) -> Final:
        if isinstance(state, Mapping) and state.get("__interrupt__"):
            raise ProtocolError(
                f"application {self.name!r} interrupts itself to wait for somebody; put a function in the place of the "
                "node that does (a graph of its own for measuring), since a sweep has nobody to ask"
            )
        try:
            value = self.output(state)
        except KeyError as error:
            # The node that writes that key was off, or returned nothing: nobody answered.
            if error.args and error.args[0] in self.builder.channels:
                return ()
            raise
        return as_output(value, self.name)


def as_output(value: Any, name: str) -> Final:
    """The value of an `output` function as a final output; a blank text or None is an empty one.

    Raises `ProtocolError` for anything but a text, a message, a reply, or ((text, weight), ...).
    """
    if value is None or isinstance(value, str):
        return (Output(value, 1.0),) if value and value.strip() else ()
    if hasattr(value, "content") and hasattr(value, "type"):
        value = as_reply(value)
    if isinstance(value, Reply):
        return (Output(value.text, 1.0, value.finish),) if value.text.strip() else ()
    if isinstance(value, Mapping) or not hasattr(value, "__iter__"):
        raise ProtocolError(
            f"{name}: expected `output` to return a text or ((text, weight), ...), got {type(value).__name__} {value!r}"
        )
    return as_final(value, name)


def messages_input(builder: Builder) -> Callable[[ItemView], Any]:
    """The item's messages under the state's key `messages`. Raises `ConfigError` when the state has no such key."""
    if "messages" not in builder.schemas[builder.input_schema]:
        raise ConfigError(
            f"the application's input has the keys {sorted(builder.schemas[builder.input_schema])} and no 'messages'; "
            "give input=function of the item (id, messages, choices, kind) that returns its first state"
        )

    def first_state(item: ItemView) -> Any:
        from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

        kinds = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}
        messages = [kinds[role](content, id=f"{ITEM_ID}{k}") for k, (role, content) in enumerate(item.messages)]
        return {"messages": messages}

    return first_state


def last_message(builder: Builder) -> Callable[[Any], Any]:
    """The last reply of a model in the state's `messages`. Raises `ConfigError` when the state has none."""
    if "messages" not in builder.schemas[builder.output_schema]:
        raise ConfigError(
            f"the application's output has the keys {sorted(builder.schemas[builder.output_schema])} and no 'messages'; "
            "give output=function of the final state that returns the answer's text"
        )

    def read(state: Any) -> Any:
        replies = (message for message in reversed(state["messages"]) if message.type == "ai")
        return next((message for message in replies if not str(message.id or "").startswith(ITEM_ID)), None)

    return read


def off_path(builder: Builder) -> list[str]:
    """Nodes that no path leads to, or from which none leads to the end: they cannot change the output.

    A node without any way on may end the run or, by a `Command` that it does not declare, go to any node that nothing
    else leads to.
    """
    graph = topology(builder)
    for name in builder.nodes:
        if graph.out_degree(name) == 0:
            unled = [other for other in builder.nodes if graph.in_degree(other) == 0 and other != name]
            graph.add_edges_from((name, target) for target in [END, *unled])
    reached, leading = nx.descendants(graph, START), nx.ancestors(graph, END)
    return sorted(name for name in builder.nodes if name not in reached or name not in leading)


def _unwritten(error: Exception, channels: Mapping[str, Any]) -> str | None:
    """The state key that an error reports as missing; None for other errors."""
    from pydantic import ValidationError

    if isinstance(error, KeyError) and error.args and error.args[0] in channels:
        return str(error.args[0])
    if isinstance(error, ValidationError):
        missing = [problem["loc"][0] for problem in error.errors() if problem["type"] == "missing"]
        return next((str(key) for key in missing if key in channels), None)
    if isinstance(error, TypeError) and "missing" in str(error) and "argument" in str(error):
        return next((key for key in channels if repr(key) in str(error)), None)
    return None


def _update_missing(key: str, error: Exception, run: RunContext) -> str:
    off = sorted(run.off | run.recorder.abstained)
    where = "; ".join(getattr(error, "__notes__", ())) or "the application"
    return (
        f"with {off} off nobody wrote the state's key {key!r}, which the graph reads ({where}); give it a value: "
        f"absent={{{off[0]!r}: {{{key!r}: ...}}}}, or a function in the node's place, or a default in the state"
    )


def _seat_missing(seat: str) -> str:
    return (
        f"seat {seat!r} is off and was asked where nothing can abstain in its place: by a conditional edge, or by a node "
        f"that chooses the next one by Command. Give a reply for it, absent={{'seat:{seat}': 'a text'}}, or "
        "the node that follows, absent={node: 'goto:NODE'}"
    )
