"""The store and the recorder of rollouts: the learner is never served from a store, and each of its calls gives a row.

In: the partners' generation store, and every call of a run. Out: replies, and a `Row` for each call of the learner. Left
out on purpose: the runs themselves; see `rollouts.py`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from collabsim.context import Recorder
from collabsim.episode import Call, Reply
from collabsim.item import Item
from collabsim.request import Request
from collabsim.store import Fetched, GenerationStore

from .records import Row
from .rows import make_row

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


class RolloutStore(GenerationStore):
    """Serves partners from their own store and keeps the learner's replies to itself, in memory.

    Made anew for every batch of rollouts: a sample that is scored against several partner draws is generated once, and
    none is ever served to a later batch or written to a file.
    """

    def __init__(self, partners: GenerationStore, learner: BaseChatModel) -> None:
        super().__init__(None)
        self._partners, self._learner = partners, learner

    async def fetch(self, model: BaseChatModel, request: Request, *, bypass: bool = False) -> Fetched:
        """See `GenerationStore.fetch`."""
        if model is self._learner:
            return await super().fetch(model, request, bypass=bypass)
        return await self._partners.fetch(model, request, bypass=bypass)


class LearnerRecorder(Recorder):
    """Collects the calls of one run, and a row for each call of the learner."""

    def __init__(self, learner: str, item: Item) -> None:
        super().__init__()
        self._learner, self._item = learner, item
        self._rows: list[Row] = []
        self.own: Reply | None = None
        """The learner's reply to the item as the task words it."""

    def record(self, call: Call, request: Request, reply: Reply) -> None:
        """Keep a call; raises what `make_row` raises for a learner's call without exact tokens."""
        if call.seat != self._learner:
            super().record(call, request, reply)
            return
        self._rows.append(make_row(request, reply))
        super().record(replace(call, tokens=reply.tokens), request, reply)
        question = self._item.view.messages
        if request.messages[-len(question) :] == question:
            self.own = reply

    @property
    def rows(self) -> tuple[Row, ...]:
        """The learner's rows, in an order that does not depend on which call ended first."""
        return tuple(sorted(self._rows, key=lambda row: (row.draw, row.tokens)))
