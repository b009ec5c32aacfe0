"""`ask`: the only way from a graph to a model.

In: a runtime, a seat, messages. Out: a `Reply`, or `ABSENT` when the seat is off in this run. Every call goes through
the generation store and is recorded. Infrastructure failures raise `CallError`, which fails the run and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final, TypeAlias, TypeVar

from collabsim.context import RunContext
from collabsim.episode import Call, Reply
from collabsim.errors import ContextOverflowError
from collabsim.identity import revision_of
from collabsim.nodes.current_run import context_of
from collabsim.nodes.state import Replies, slot
from collabsim.request import Messages, Request, as_messages
from collabsim.seeds import call_seed

Node = TypeVar("Node", bound=Callable[..., Any])


class Absent:
    """The reply of an absent seat; falsy, so that `if reply:` works."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent()


async def ask(
    runtime: Any, seat: str, messages: Any, *, draw: int = 0, node: str = "", **sampling: Any
) -> Reply | Absent:
    """Ask a seat (or helper) and wait for its reply.

    `messages` is the prompt of the protocol; the seat's own system prompt and examples are put before it, so that asking
    `run.item.messages` is the seat's own answer to the item. `draw` tells samples of one seat for one item apart: an
    opening answer is draw 0, round t asks draw t. `sampling` overrides the seat's settings for this call.

    Returns `ABSENT` without any call when the seat is off. Raises `CallError` when the call fails, `ProtocolError` for
    an unknown seat, `ConfigError` for an unknown sampling setting.
    """
    run = context_of(runtime)
    speaker = run.speaker(seat)
    if speaker is None:
        return ABSENT
    request = Request(
        messages=speaker.persona + as_messages(messages),
        sampling=speaker.sampling.replace(**sampling),
        seed=call_seed(run.run_seed, run.item.id, seat, draw, run.replicas.get(seat, run.replica)),
        draw=draw,
    )
    return await fetch_recorded(run, speaker.model, request, (seat,), node or node_name(runtime))


async def fetch_recorded(run: RunContext, model: Any, request: Request, speakers: Sequence[str], node: str) -> Reply:
    """The model's reply to `request`, through the run's store, recorded as one call of each of the `speakers`.

    Several speakers make a reply together: each has its own part of the usage, in the order of `reply.parts`. A prompt that
    does not fit is an empty reply where the limits of the run say so. Raises `CallError` when the call fails.
    """
    started = perf_counter()
    try:
        reply, key, reused = await run.store.fetch(model, request)
    except ContextOverflowError:
        if run.limits.on_overflow == "fail":
            raise
        reply, key, reused = Reply("", finish="overflow", revision=revision_of(model)), "", True
    parts = reply.parts if len(reply.parts) == len(speakers) else (reply.usage,) * len(speakers)
    for speaker, usage in zip(speakers, parts, strict=True):
        call = Call(
            seat=speaker,
            node=node,
            draw=request.draw,
            revision=reply.revision,
            key=key,
            usage=usage,
            finish=reply.finish,
            seconds=0.0 if reused else perf_counter() - started,
            reused=reused,
        )
        run.recorder.record(call, request, reply)
    return reply


def node_name(runtime: Any) -> str:
    """The node in which a bare `ask` runs: LangGraph's namespace is `node:task`, nested ones joined by `|`."""
    info = getattr(runtime, "execution_info", None)
    namespace = getattr(info, "checkpoint_ns", "") or ""
    return namespace.rpartition("|")[2].partition(":")[0]


def computation(node: Node) -> Node:
    """Mark a node (a function, or the class of one) that asks nobody, such as a vote.

    The trainer reads off the graph which seats read which others. A node that is neither a ready `Ask` nor marked may ask
    anybody.
    """
    node.makes_no_call = True  # type: ignore[attr-defined]
    return node


Prompt: TypeAlias = Callable[[Any, RunContext], Messages | None]
"""(state, run) -> messages to ask, or None to make no call."""


def opening(state: Any, run: RunContext) -> Messages:  # noqa: ARG001 (a Prompt)
    """The prompt of a first own answer: the task's messages as they are, worded by no protocol."""
    return run.item.messages


@dataclass(frozen=True, slots=True)
class Ask:
    """A ready node around `ask`: frozen and inspectable, unlike a closure.

    Absent seats, and prompts that return None, return no update; the node's edges fire all the same.
    """

    node: str
    seat: str
    prompt: Prompt = opening
    into: str = "replies"
    draw: int = 0

    async def __call__(self, state: Any, runtime: Any) -> dict[str, Replies] | None:
        """Ask and write `{into: {slot(seat, draw): reply}}`."""
        run = context_of(runtime)
        if self.seat not in run.present and run.speaker(self.seat) is None:
            return None
        return await _ask_into(self, self.seat, self.seat, state, runtime, run)


@dataclass(frozen=True, slots=True)
class AskRole:
    """Like `Ask`, for whoever holds a role in this run; writes under the role's name."""

    node: str
    role: str
    prompt: Prompt
    into: str = "replies"
    draw: int = 0

    async def __call__(self, state: Any, runtime: Any) -> dict[str, Replies] | None:
        """Ask the role's holder and write `{into: {slot(role, draw): reply}}`."""
        run = context_of(runtime)
        holder = run.roles.get(self.role)
        return None if holder is None else await _ask_into(self, holder, self.role, state, runtime, run)


async def _ask_into(
    node: Ask | AskRole, seat: str, owner: str, state: Any, runtime: Any, run: RunContext
) -> dict[str, Replies] | None:
    messages = node.prompt(state, run)
    if messages is None:
        return None
    reply = await ask(runtime, seat, messages, draw=node.draw, node=node.node)
    return {node.into: {slot(owner, node.draw): reply}} if isinstance(reply, Reply) else None
