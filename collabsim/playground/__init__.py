"""A run context for graphs that are opened without a run, as LangGraph's own tools do.

Out: one shared context with seats `a`, `b`, `c` filled by simulated models of rising skill, a helper `base` for merges,
one sample question whose answer they know, and a store in memory. Nothing is measured here; it is for looking at graphs
and trying them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from collabsim.context import Recorder, RunContext, item_order

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

    from collabsim.protocols import Protocol

PLAYGROUND_SEATS = ("a", "b", "c")
SAMPLE = "What is 17 + 25?", "42"


@lru_cache(maxsize=1)
def playground_context() -> RunContext:
    """The context of the playground, made once per process."""
    from collabsim.models.simulation.simulated import SimulatedModel
    from collabsim.pool import Pool
    from collabsim.store import GenerationStore
    from collabsim.tasks import make_item

    item = make_item(*SAMPLE)
    models = {name: SimulatedModel(name=name, skill=float(k)) for k, name in enumerate(PLAYGROUND_SEATS)}
    base = SimulatedModel(name="base", skill=-1.0)
    for model in (*models.values(), base):
        model.study([item])
    pool = Pool(models)
    order = item_order(0, item.id, tuple(zip(pool, pool, strict=True)))
    return RunContext(
        run_seed=0,
        item=item.view,
        present=frozenset(pool),
        order=order,
        preference=order,
        pool=pool,
        helpers=Pool({"base": base}),
        roles=_EveryRole(order[0]),
        answers=item.answers,
        store=GenerationStore(None),
        recorder=_Forgetful(),
    )


class _EveryRole(dict[str, str]):
    """In the playground one seat holds every role, whatever its name."""

    def __init__(self, holder: str) -> None:
        super().__init__()
        self.holder = holder

    def get(self, key: str, default: object = None) -> str:  # noqa: ARG002
        return self.holder


class _Forgetful(Recorder):
    def record(self, *_: object) -> None:
        """Keep nothing: the playground's context lives as long as the process."""


def playground_graph(
    protocol: Protocol, seats: Sequence[str] = PLAYGROUND_SEATS
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The protocol over (some of) the playground's seats, compiled: what `langgraph.json` serves."""
    return protocol.build(seats).compile()
