"""Checks any protocol with one call, `check_protocol(build)`, and any system, such as one made from an existing application,
with `check_system(system)`.

In: a build function or a registered name, and its options. Out: nothing; an `AssertionError` that names the broken rule,
the coalition and the item. Models are simulated, so a check takes a second; a protocol that fits something is fitted on
sample dev items. What is checked:

- every one of the 2^n masks has an outcome in [0, 1]; nobody present is worth the floor, without any call (or what the
  base, a helper, answers, where the protocol says so);
- a single present seat is worth its own answer, item by item (individual strength);
- the order of seats in the pool changes nothing;
- two seats with one greedy model are worth the same in every coalition;
- a seat that never says anything is a null player: beside two others or more it changes no outcome (one other seat may do
  more in company than alone; a seat with a role by name keeps it; joined weights or next tokens cannot say nothing);
- runs that are in flight together do not see each other;
- the graph stays within its step limit, makes no more calls than the protocol declares, and can be drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, permutations
from typing import Any

from collabsim.coalitions.forecast import calls_per_run
from collabsim.episode import Reply
from collabsim.item import Item
from collabsim.loop import run_sync
from collabsim.models.simulation.simulated import SimulatedModel
from collabsim.pool import Pool, Seat
from collabsim.protocols import Build, Protocol, as_protocol
from collabsim.request import Request, Sampling
from collabsim.roles import as_names
from collabsim.store import GenerationStore
from collabsim.system.execute import RunRequest, run_all
from collabsim.system.fitted import Fitted
from collabsim.system.fitting import afit
from collabsim.system.system import System
from collabsim.system.topology import stranded
from collabsim.tasks import make_item

TOPICS = ("sums", "products")


def sample_items(count: int = 6) -> list[Item]:
    """Small sums and products, with their topics."""
    sums = [make_item(f"What is {k + 2} + {3 * k + 5}?", str(4 * k + 7), topic=TOPICS[0]) for k in range(count)]
    products = [
        make_item(f"What is {k + 2} times {k + 3}?", str((k + 2) * (k + 3)), topic=TOPICS[1]) for k in range(count)
    ]
    return [item for pair in zip(sums, products, strict=True) for item in pair][:count]


def sample_dev_items(count: int = 8) -> list[Item]:
    """Other sums and products, for what a protocol fits."""
    return [
        make_item(f"What is {k + 20} + {k + 30}?", str(2 * k + 50), topic=TOPICS[0])
        if k % 2
        else make_item(f"What is {k + 20} times {k + 30}?", str((k + 20) * (k + 30)), topic=TOPICS[1])
        for k in range(count)
    ]


def sample_pool(names: Sequence[str], items: Sequence[Item], *, greedy: bool = False) -> Pool:
    """Simulated seats of different skill that listen to each other and now and then give no answer."""
    sampling = Sampling(temperature=0.0 if greedy else 1.0)
    seats = {}
    for k, name in enumerate(sorted(names)):
        model = SimulatedModel(name=f"member {k}", skill=k - 1.0, conformity=0.4, no_answer_rate=0.1)
        model.study([*items, *sample_dev_items()])
        seats[name] = Seat(name, model, sampling=sampling, description=f"a model for {TOPICS[k % 2]}")
    return Pool({name: seats[name] for name in names})


class _Mute:
    """A model that never says anything."""

    identity = "mute"
    revision = "0"

    async def areply(self, _: Request) -> Reply:
        return Reply("")


def check_protocol(
    build: str | Protocol | Build,
    *,
    options: Mapping[str, Any] | None = None,
    size: int = 3,
    roles: Mapping[str, str | Sequence[str]] | None = None,
    helpers: Pool | None = None,
) -> None:
    """Put a protocol over `size` seats through all checks. Raises `AssertionError` at the first rule that is broken."""
    run_sync(acheck_protocol(build, options=options, size=size, roles=roles, helpers=helpers))


async def acheck_protocol(
    build: str | Protocol | Build,
    *,
    options: Mapping[str, Any] | None = None,
    size: int = 3,
    roles: Mapping[str, str | Sequence[str]] | None = None,
    helpers: Pool | None = None,
) -> None:
    """`check_protocol` for async code."""
    items = sample_items()
    names = [chr(ord("a") + k) for k in range(size)]
    system = System(
        as_protocol(build),
        sample_pool(names, items),
        options=options or {},
        roles=roles or {},
        helpers=helpers or Pool(),
        store=GenerationStore(None),
    )
    system.study([*items, *sample_dev_items()])
    if system.protocol.fit is not None or "dev" in system.protocol.needs:
        system = await _fitted(system)
    check_graph(system)
    await check_masks(system, items)
    await check_seat_order(system, items)
    await check_duplicates(system, items)
    await check_null_player(system, items)
    await check_isolation(system, items)


def check_system(system: System, items: Sequence[Item] | None = None) -> None:
    """Put a ready system (`from_graph(app, ...)`) through the checks that hold for any graph.

    It can be drawn; all 2^n coalitions of its players have an outcome in [0, 1]; absent seats are not asked; and, when all
    calls go through seats, a run gives the same alone and beside others. Models are those of its pool, so give it
    simulated ones. `items` default to small sums and products. Raises `AssertionError` at the first rule that is broken,
    and what the system raises for a coalition that it cannot run.
    """
    run_sync(acheck_system(system, items))


async def acheck_system(system: System, items: Sequence[Item] | None = None) -> None:
    """`check_system` for async code."""
    items = sample_items() if items is None else items
    system.study(items)
    _hold("graph" in system.graph.get_graph().draw_mermaid(), "the graph cannot be drawn")
    paired = True
    for present in coalitions(system.players):
        for item in items:
            episode = await system.arun(item, present)
            paired = paired and all(call.paired for call in episode.calls)
            where = f"coalition {sorted(present)} on {item.question!r}"
            _hold(episode.error is None, f"{where} failed: {episode.error}")
            _hold(episode.outcome is not None and 0 <= episode.outcome <= 1, f"{where}: outcome {episode.outcome}")
            off = {seat for name in system.players if name not in present for seat in system.own_answers[name]}
            speakers = sorted(off & {call.seat for call in episode.calls})
            _hold(not speakers, f"{where}: absent seats {speakers} were asked")
    if paired:
        await check_isolation(system, items)


def coalitions(seats: Sequence[str]) -> list[frozenset[str]]:
    """All 2^n sets of seats, small ones first."""
    return [frozenset(chosen) for size in range(len(seats) + 1) for chosen in combinations(seats, size)]


def check_graph(system: System) -> None:
    """The graph can be drawn, and everything in it leads to the end."""
    drawing = system.graph.get_graph()
    _hold("graph" in drawing.draw_mermaid(), "the graph cannot be drawn")
    _hold(bool(drawing.draw_ascii()), "the graph cannot be drawn as text")
    unreachable = stranded(system.graph.builder)
    _hold(not unreachable, f"no path leads from {unreachable} to the end")


async def check_masks(system: System, items: Sequence[Item]) -> None:
    """Every coalition has an outcome; the empty one the floor, a single one the seat's own score."""
    bound = calls_per_run(system)
    for present in coalitions(system.pool.seats):
        for item in items:
            episode = await system.arun(item, present)
            where = f"coalition {sorted(present)} on {item.question!r}"
            _hold(episode.error is None, f"{where} failed: {episode.error}")
            _hold(episode.outcome is not None and 0 <= episode.outcome <= 1, f"{where}: outcome {episode.outcome}")
            _hold(
                len(episode.calls) <= bound(present), f"{where}: {len(episode.calls)} calls, declared {bound(present)}"
            )
            if not present and system.protocol.empty == "floor":
                _hold(episode.outcome == item.floor and not episode.calls, f"{where} is not the floor without a call")
            if len(present) == 1 and not system.options.get("self_refine"):
                own = await system.alone_on(item, *present)
                _hold(episode.outcome == own.outcome, f"{where}: {episode.outcome}, but the seat alone {own.outcome}")
            # the calls of a merge are recorded under the names of its members, joined by +
            speakers = {name for call in episode.calls for name in call.seat.split("+")} - set(system.helpers)
            _hold(speakers <= present, f"{where}: absent seats {sorted(speakers - present)} were asked")


async def check_seat_order(system: System, items: Sequence[Item]) -> None:
    """A pool with its seats in another order gives the same outcomes."""
    seats = system.pool.seats
    for order in list(permutations(seats))[1:4]:
        other = await _refitted(replace(system, pool=Pool({name: system.pool[name] for name in order})))
        for present in coalitions(seats):
            for item in items[:3]:
                first, second = await system.arun(item, present), await other.arun(item, present)
                where = f"coalition {sorted(present)} on {item.question!r}"
                _hold(
                    first.outcome == second.outcome, f"{where}: {first.outcome}, with seats as {order} {second.outcome}"
                )


async def check_duplicates(system: System, items: Sequence[Item]) -> None:
    """Two seats with one greedy model are worth the same in every coalition, item by item."""
    seats = system.pool.seats
    if len(seats) < 2:
        return
    pool = sample_pool(seats, items, greedy=True)
    twins = await _refitted(replace(system, pool=Pool({**pool, seats[1]: replace(pool[seats[0]], name=seats[1])})))
    for present in coalitions(seats[2:]):
        for item in items:
            with_first = await twins.arun(item, present | {seats[0]})
            with_second = await twins.arun(item, present | {seats[1]})
            where = f"{sorted(present)} with one or the other of two equal seats, on {item.question!r}"
            values = f"{with_first.outcome} and {with_second.outcome}"
            _hold(with_first.outcome == with_second.outcome, f"{where}: {values}")


async def check_null_player(system: System, items: Sequence[Item]) -> None:
    """The last seat without a role of its own, when it never says anything, changes no outcome of two or more others."""
    fixed = {name for names in system.roles.values() for name in as_names(names)}
    fixed |= {seat for seat in system.pool if seat in system.options.values()}
    free = [seat for seat in system.pool if seat not in fixed]
    if not free or {"logits", "weights"} & system.protocol.needs:
        return
    last = free[-1]
    muted = replace(system, pool=Pool({**system.pool, last: Seat(last, _Mute())}))
    muted = await _fitted(muted)  # so that a role which falls to a seat falls to one that was good on dev
    others = [seat for seat in system.pool if seat != last]
    for present in (some for some in coalitions(others) if len(some) > 1):
        for item in items:
            without, beside = await muted.arun(item, present), await muted.arun(item, present | {last})
            where = f"coalition {sorted(present)} on {item.question!r}"
            values = f"{without.outcome}, beside {last!r}, which says nothing, {beside.outcome}"
            _hold(beside.error is None, f"{where} failed beside {last!r}, which says nothing: {beside.error}")
            _hold(without.outcome == beside.outcome, f"{where}: {values}")


async def check_isolation(system: System, items: Sequence[Item]) -> None:
    """Runs of all coalitions at once give what they give one by one."""
    plan = [(item, present) for item in items[:3] for present in coalitions(system.players)]
    alone = [(await system.arun(item, present)).outcome for item, present in plan]
    requests = [RunRequest(item, present) for item, present in plan]
    together = await run_all(system, requests, concurrency=len(plan))
    for (item, present), one, many in zip(plan, alone, together, strict=True):
        where = f"coalition {sorted(present)} on {item.question!r}"
        _hold(one == many.episode.outcome, f"{where}: {one} by itself, {many.episode.outcome} among other runs")


async def _refitted(system: System) -> System:
    """A system with another pool, fitted anew if it was fitted before."""
    return await _fitted(system) if system.fitted.inputs else system


async def _fitted(system: System) -> System:
    unfitted = replace(system, fitted=Fitted())
    return replace(unfitted, fitted=await afit(unfitted, sample_dev_items()))


def _hold(holds: bool, rule: str) -> None:
    if not holds:
        raise AssertionError(rule)
