"""One run of a system, from coalition to episode.

In: a system, an item, who is present, a seed. Out: an `Episode`. Failures of model calls, of nodes and of scoring are
data: the episode then has no outcome and says why. Only errors that would meet every run alike are raised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from collabsim.context import Recorder, RunContext, item_order
from collabsim.episode import Episode, Final, Output, Reply, RunError
from collabsim.errors import ConfigError, PrerequisiteError, ProtocolError, StoreError, nearest
from collabsim.item import Item
from collabsim.nodes.asking import ask
from collabsim.nodes.current_run import CURRENT_RUN
from collabsim.nodes.state import slot
from collabsim.roles import by_rank, hold_roles
from collabsim.system.outcome import Judgement, as_final, judge

if TYPE_CHECKING:
    from collabsim.request import Messages
    from collabsim.system.composition import Composition

ABORTS = (ConfigError, PrerequisiteError, ProtocolError, StoreError)
"""Errors that would meet every run alike: they end a sweep instead of failing one run."""


def context(
    system: Composition,
    item: Item,
    present: frozenset[str],
    run_seed: int,
    replica: int,
    recorder: Recorder,
    replicas: Mapping[str, int] | None = None,
) -> RunContext:
    """The context of one run: the present seats, their order, their roles."""
    pool = system.pool
    for name in replicas or ():
        if name not in pool and name not in system.helpers:
            known = [*pool, *system.helpers]
            raise ConfigError(f"replicas: no seat {name!r}{nearest(name, known)}; there are {known}")
    if system.replacement is not None:
        pool, present = system.filled(present), system.everyone
    everyone = item_order(run_seed, item.id, system.twins) if system.order is None else tuple(system.order)
    order = everyone if len(present) == len(everyone) else tuple(seat for seat in everyone if seat in present)
    preference = by_rank(order, system.ranks)
    return RunContext(
        run_seed=run_seed,
        item=item.view,
        present=present,
        order=order,
        preference=preference,
        pool=pool,
        helpers=system.helpers,
        roles=hold_roles(system.protocol.roles, system.roles, system.helpers, preference),
        answers=item.answers,
        store=system.store,
        recorder=recorder,
        fitted=system.fitted.data,
        limits=system.limits,
        replica=replica,
        replicas=replicas or {},
    )


async def episode(
    item: Item, present: frozenset[str], run: RunContext, produce: Callable[[], Awaitable[Final]]
) -> Episode:
    """Produce the final output, judge it, and record what happened. Raises only the errors in `ABORTS`."""
    started = perf_counter()
    final: Final = ()
    try:
        final = await produce()
        spoke = bool(run.recorder.calls)
        if getattr(item.scorer, "waits", False):  # it runs programs: other runs go on meanwhile
            judgement = await asyncio.to_thread(judge, item, final, spoke=spoke)
        else:
            judgement = judge(item, final, spoke=spoke)
    except ABORTS:
        raise
    except Exception as caught:
        where = "; ".join(getattr(caught, "__notes__", ()))  # LangGraph notes the node there
        judgement = Judgement(None, None, RunError(type(caught).__name__, str(caught) or repr(caught), where))
    return Episode(
        item_id=item.id,
        present=present,
        run_seed=run.run_seed,
        replica=run.replica,
        final=final,
        outcome=judgement.outcome,
        verdict=judgement.verdict,
        calls=tuple(run.recorder.calls),
        error=judgement.error,
        seconds=perf_counter() - started,
        scores=judgement.scores,
    )


def at_floor(item: Item, present: frozenset[str], run_seed: int, replica: int) -> Episode:
    """The episode of a run that is worth the floor by definition."""
    return Episode(item.id, present, run_seed, replica, (), item.floor, None, (), None, 0.0)


async def through_graph(system: Composition, run: RunContext) -> Final:
    """The final output of the system's graph."""
    from langsmith import tracing_context

    # The variable serves graphs whose own context is not ours; tracing would ship every run to a server.
    token = CURRENT_RUN.set(run)
    try:
        with tracing_context(enabled=False):
            graph = cast(Any, system.graph)
            state = await graph.ainvoke({}, context=run, config={"recursion_limit": system.step_limit})
    finally:
        CURRENT_RUN.reset(token)
    return as_final(state.get("final", ()), system.protocol.name)


async def own_answer(run: RunContext, seat: str) -> Final:
    """The seat's reply to the item as the task words it, outside any graph."""
    reply = await ask(_BareRuntime(run), seat, run.item.messages, node=slot(seat, 0))
    return (Output(reply.text, 1.0, reply.finish),) if isinstance(reply, Reply) else ()


async def reply_of_seat(
    system: Composition, item: Item, seat: str, messages: Messages, *, draw: int = 0, run_seed: int = 0
) -> Reply:
    """The reply of a seat to `messages` about an item outside any run, for protocols that fit something on dev items.

    Goes through the store like any call. Raises `CallError` when the call fails.
    """
    run = context(system, item, frozenset((seat,)), run_seed, 0, Recorder())
    reply = await ask(_BareRuntime(run), seat, messages, draw=draw)
    assert isinstance(reply, Reply)  # the seat is present
    return reply


@dataclass(frozen=True, slots=True)
class _BareRuntime:
    """The part of a LangGraph runtime that `ask` needs, for calls that are made outside a graph."""

    context: RunContext
