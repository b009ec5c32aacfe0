"""A system: a composition that is ready to be run on items under any coalition.

In: protocol, options, pool, helpers, roles, what was fitted on dev. Out: one `Episode` per (item, coalition, seed). What
differs between runs is in the run context. Left out on purpose: sweeps, values and files; see `coalitions`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from collabsim.arguments import checked, checked_names
from collabsim.context import Recorder, RunContext
from collabsim.episode import Episode, Final
from collabsim.errors import ConfigError, nearest
from collabsim.item import Item
from collabsim.loop import run_sync
from collabsim.system import running
from collabsim.system.composition import Composition

if TYPE_CHECKING:
    from collabsim.context import Limits
    from collabsim.pool import Members
    from collabsim.protocols import Build, Protocol
    from collabsim.store import GenerationStore
    from collabsim.system.fitted import Fitted


@checked_names
@dataclass(frozen=True, eq=False)
class System(Composition):
    """protocol + options + pool (+ helpers, roles, what was fitted on dev).

    `protocol` is also taken as a registered name, as `package.module:function` or as a bare build function; `pool` and
    `helpers` also as mappings of names to chat models. All are read as a `Protocol` and as `Pool`s.
    """

    if TYPE_CHECKING:  # the generated one knows only what the fields are read as

        def __init__(
            self,
            protocol: str | Protocol | Build,
            pool: Members,
            options: Mapping[str, Any] = ...,
            helpers: Members = ...,
            roles: Mapping[str, str | Sequence[str]] = ...,
            order: Sequence[str] | None = ...,
            alone: Literal["answers", "floor"] = ...,
            absent: str = ...,
            fitted: Fitted = ...,
            store: GenerationStore = ...,
            limits: Limits = ...,
        ) -> None: ...

    def study(self, items: Sequence[Item]) -> None:
        """Hand the answer key of `items` to every simulated model; real models have no `study`."""
        for seat in (*self.pool.values(), *self.helpers.values()):
            learn = getattr(seat.model, "study", None)
            if callable(learn):
                learn(items)

    @checked(item="give task.items[0], or make_item(question, gold)")
    def run(
        self,
        item: Item,
        coalition: Collection[str] | None = None,
        *,
        run_seed: int = 0,
        replica: int = 0,
        replicas: Mapping[str, int] | None = None,
        recorder: Recorder | None = None,
    ) -> Episode:
        """`arun`, waiting for the result; works in scripts and notebooks. Also raises `ConfigError` for wrong arguments."""
        more = {"run_seed": run_seed, "replica": replica}
        return run_sync(self.arun(item, coalition, **more, replicas=replicas, recorder=recorder))

    @checked(item="give task.items[0], or make_item(question, gold)")
    async def arun(
        self,
        item: Item,
        coalition: Collection[str] | None = None,
        *,
        run_seed: int = 0,
        replica: int = 0,
        replicas: Mapping[str, int] | None = None,
        recorder: Recorder | None = None,
    ) -> Episode:
        """One run on `item` with the seats of `coalition` present (None: all).

        `replica` tells runs with other samples apart; `replicas` gives single seats or helpers another one.
        Model failures are returned as an episode without outcome. Raises `ConfigError` for an unknown seat, for a system
        that must be fitted on dev items first, and the errors that would meet every run alike (`running.ABORTS`).
        """
        self.check_fitted()
        present = self._present(coalition)
        if len(present) == 1 and self.alone == "floor" and self.replacement is None:
            return running.at_floor(item, present, run_seed, replica)
        run = self._context(item, present, run_seed, replica, recorder or Recorder(), replicas)
        return await running.episode(item, present, run, lambda: self._final(run))

    @checked(item="give task.items[0], or make_item(question, gold)")
    async def alone_on(
        self,
        item: Item,
        seat: str,
        *,
        run_seed: int = 0,
        replica: int = 0,
        replicas: Mapping[str, int] | None = None,
        recorder: Recorder | None = None,
    ) -> Episode:
        """The seat's own single answer to the item, outside the protocol: its individual strength on this item."""
        self.pool.check(seat)
        present = frozenset((seat,))
        run = running.context(self, item, present, run_seed, replica, recorder or Recorder(), replicas)
        return await running.episode(item, present, run, lambda: running.own_answer(run, seat))

    def _context(self, item: Item, present: frozenset[str], *how: Any) -> RunContext:
        return running.context(self, item, present, *how)

    async def _final(self, run: RunContext) -> Final:
        return await running.through_graph(self, run)

    def _present(self, coalition: Collection[str] | None) -> frozenset[str]:
        if coalition is None:
            return frozenset(self.players)
        present = frozenset(coalition)
        for name in present.difference(self.players):
            raise ConfigError(f"no seat {name!r}{nearest(name, self.players)}; the pool has {list(self.players)}")
        return present

    @property
    def players(self) -> tuple[str, ...]:
        """Names of the players that coalitions switch: the seats."""
        return self.pool.seats

    @property
    def own_answers(self) -> Mapping[str, tuple[str, ...]]:
        """Player to the seats whose own answers are its individual strength."""
        return {seat: (seat,) for seat in self.pool}

    def meanings(self) -> dict[str, Any]:
        """The meaning of the numbers of a sweep, for reports."""
        return {
            "floor": "v(empty): outcome of a run in which nobody is present",
            "alone": self.alone,
            "absent": self.absent,
            "abstaining": self.protocol.absent,
        }
