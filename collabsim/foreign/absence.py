"""Rules by which a node of a foreign graph abstains.

In: a user's rule for a node under `absent=`. Out: an `Absence`, ready to act in the node's place, or a `ConfigError` where
the graph would stop silently. A node that is off still runs as a step: its edges fire, the topology stays.

The rules: `skip` (no update), `pass` (the node's input is its update), `unavailable` (of a tool node: every pending call
is answered with a message that says so), `goto:NODE`, an update, a `Command`, or a function in the node's place.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langgraph.graph import END, StateGraph
from langgraph.types import Command

from collabsim.errors import ConfigError, nearest

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

WORDS = ("skip", "pass", "unavailable")
GOTO = "goto:"
FILE_MODULE = "_collabsim_"
"""Prefix of the names of modules that were read from a file: `_collabsim_<stem>_<digest of the path>`."""
UNAVAILABLE = "This tool is not available."
Builder = Any  # StateGraph with its four type parameters, which are not known here


@dataclass(frozen=True, slots=True)
class Absence:
    """The action in a node's place when the node is off."""

    word: str
    """The rule in words: it is part of the system's identity and of its reports."""
    act: Callable[[Any, RunnableConfig], Awaitable[Any]]
    """(the node's input, config) -> the update."""
    routes: bool
    """Whether it chooses the next node by itself."""
    may_be_off: bool = False
    """Whether coalitions switch the node itself, and not only seats that it asks."""


def absence_of(builder: Builder, node: str, rule: Any) -> Absence:
    """The rule of a node, checked against its graph; `rule` None: `unavailable` for tool nodes, else `skip`.

    Raises `ConfigError` for an unknown rule or state key, and where the rule leaves the run without a next node.
    """
    spec = builder.nodes[node]
    targets = command_targets(builder, node)
    if rule is None:
        rule = "unavailable" if is_tool_node(spec.runnable) else "skip"
    absence = _parsed(builder, node, rule)
    if absence.routes or targets is None:
        return absence
    if len(targets) == 1:  # a node that always goes on to one place goes there when it is off, too
        return _and_then(absence, targets[0])
    raise ConfigError(way_on_missing(node, absence.word, targets))


def word_of(rule: Any) -> str:
    """A name of a function that is the same in every process and folder; of any other value, its `repr`."""
    if not callable(rule):
        return repr(rule)
    module = str(getattr(rule, "__module__", ""))
    if module.startswith(FILE_MODULE):
        module = module.removeprefix(FILE_MODULE).rpartition("_")[0]
    return f"{module}.{getattr(rule, '__qualname__', type(rule).__qualname__)}"


def way_on_missing(node: str, word: str, targets: Sequence[str] = ()) -> str:
    """The message about a node that chooses the next one by itself and is off."""
    among = f" among {sorted(targets)}" if targets else ""
    example = sorted(targets)[0] if targets else "writer"
    return (
        f"node {node!r} chooses the next node{among} by Command(goto=...), so a run without it ({word!r}) would end "
        f"there silently; name the next node: absent={{{node!r}: 'goto:{example}'}}, a Command, or a function "
        "in its place"
    )


def command_targets(builder: Builder, node: str) -> tuple[str, ...] | None:
    """Nodes to which a node may send the run by `Command`; None when it has edges, or when the run ends there."""
    return None if leads_somewhere(builder, node) else tuple(builder.nodes[node].ends or ()) or None


def leads_somewhere(builder: Builder, node: str) -> bool:
    """Whether an edge, plain or conditional, starts at a node."""
    starts = {start for start, _ in builder.edges} | {start for starts, _ in builder.waiting_edges for start in starts}
    return node in starts or bool(builder.branches.get(node))


def is_tool_node(runnable: Any) -> bool:
    """Whether a node is LangGraph's own `ToolNode`."""
    try:
        from langgraph.prebuilt import ToolNode
    except ImportError:
        return False
    return isinstance(runnable, ToolNode)


def _parsed(builder: Builder, node: str, rule: Any) -> Absence:
    if isinstance(rule, str):
        return _word(builder, node, rule)
    if isinstance(rule, Command):
        return Absence(f"Command({rule.goto!r}, {rule.update!r})", _constant(rule), bool(rule.goto))
    if callable(rule):
        return _replacement(node, rule)
    if isinstance(rule, Mapping):
        _check_keys(builder, node, rule)
    return Absence(repr(rule), _constant(rule), False)


def _word(builder: Builder, node: str, rule: str) -> Absence:
    if rule.startswith(GOTO):
        target = rule.removeprefix(GOTO)
        target = END if target == "END" else target
        if target != END and target not in builder.nodes:
            raise ConfigError(f"absent[{node!r}]: no node {target!r}{nearest(target, builder.nodes)} to go to")
        return Absence(rule, _constant(Command(goto=target)), True)
    if rule == "skip":
        return Absence(rule, _constant(None), False)
    if rule == "pass":
        return Absence(rule, _passing(builder), False)
    if rule == "unavailable":
        if not is_tool_node(builder.nodes[node].runnable):
            raise ConfigError(f"absent[{node!r}]: 'unavailable' answers tool calls, and this node is no ToolNode")
        return Absence(rule, _unavailable(builder.nodes[node].runnable), False)
    raise ConfigError(
        f"absent[{node!r}]: expected one of {', '.join(WORDS)}, goto:NODE, an update, a Command or a function, "
        f"got {rule!r}{nearest(rule, WORDS)}"
    )


def _check_keys(builder: Builder, node: str, update: Mapping[str, Any]) -> None:
    unknown = [key for key in update if key not in builder.channels]
    if unknown and "__root__" not in builder.channels:
        raise ConfigError(
            f"absent[{node!r}]: the graph's state has no key {unknown[0]!r}{nearest(unknown[0], builder.channels)}; "
            f"it has {sorted(builder.channels)}"
        )


def _constant(update: Any) -> Callable[[Any, RunnableConfig], Awaitable[Any]]:
    async def give(_state: Any, _config: RunnableConfig) -> Any:
        return copy.deepcopy(update)  # reducers write ids into the messages that they are given

    return give


def _passing(builder: Builder) -> Callable[[Any, RunnableConfig], Awaitable[Any]]:
    """Returns the node's input as its update, without the keys whose reducer would add it a second time."""
    from langgraph.channels import LastValue

    plain = [key for key, channel in builder.channels.items() if isinstance(channel, LastValue)]

    async def hand_on(state: Any, _config: RunnableConfig) -> Any:
        if "__root__" in builder.channels:
            return state if "__root__" in plain else None
        fields = state if isinstance(state, Mapping) else vars(state)
        return {key: fields[key] for key in plain if key in fields}

    return hand_on


def _unavailable(tools: Any) -> Callable[[Any, RunnableConfig], Awaitable[Any]]:
    """Answers every pending call; a conversation with a call and no answer to it is refused by chat models."""
    from langchain_core.messages import ToolMessage

    key = getattr(tools, "_messages_key", "messages")

    async def answer(state: Any, _config: RunnableConfig) -> Any:
        calls = _pending_calls(state, key)
        answers = [ToolMessage(UNAVAILABLE, name=call["name"], tool_call_id=call["id"]) for call in calls]
        return answers if isinstance(state, list) else {key: answers}

    return answer


def _pending_calls(state: Any, key: str) -> list[Any]:
    if isinstance(state, Mapping) and "tool_call" in state:  # one call, sent to the node by itself
        return [state["tool_call"]]
    messages = state if isinstance(state, list) else state.get(key) if isinstance(state, Mapping) else vars(state)[key]
    last = next((message for message in reversed(messages or []) if message.type == "ai"), None)
    answered = {message.tool_call_id for message in messages or [] if message.type == "tool"}
    return [call for call in getattr(last, "tool_calls", []) if call["id"] not in answered]


def _replacement(node: str, rule: Callable[..., Any]) -> Absence:
    """A function in the node's place, with everything that LangGraph gives to nodes (config, runtime, writer)."""
    place: Any = StateGraph(dict)
    place.add_node(node, rule)
    runnable = place.nodes[node].runnable

    async def act(state: Any, config: RunnableConfig) -> Any:
        return await runnable.ainvoke(state, config)

    return Absence(word_of(rule), act, True)


def _and_then(absence: Absence, target: str) -> Absence:
    async def act(state: Any, config: RunnableConfig) -> Any:
        return Command(update=await absence.act(state, config), goto=target)

    return Absence(absence.word, act, True)
