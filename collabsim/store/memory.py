"""Replies held in memory, and names for models that have no identity.

In: keys and replies. Out: replies. Neither class locks anything: the store does, around both.
"""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from collabsim.episode import Reply

OVERHEAD = 500
"""Bytes that a reply takes besides its text and tokens."""


class Memory:
    """Replies by key: those that are also on disk within `room` bytes, the least recently used leaving first; the rest
    until they are dropped, since a second generation could give another reply."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._recent: OrderedDict[str, tuple[Reply, int]] = OrderedDict()
        self._pinned: dict[str, Reply] = {}

    def get(self, key: str) -> Reply | None:
        """The reply, which thereby counts as used."""
        entry = self._recent.get(key)
        if entry is None:
            return self._pinned.get(key)
        self._recent.move_to_end(key)
        return entry[0]

    def cache(self, key: str, reply: Reply, size: int) -> None:
        """Hold a reply that is on disk in `size` bytes."""
        if key in self._recent:
            return
        self._recent[key] = (reply, size + OVERHEAD)
        self._room -= size + OVERHEAD
        while self._room < 0:
            _, (_, freed) = self._recent.popitem(last=False)
            self._room += freed

    def keep(self, key: str, reply: Reply) -> None:
        """Hold a reply that has no other copy."""
        self._pinned[key] = reply

    def drop(self, keys: set[str]) -> None:
        """Forget replies that `keep` holds."""
        for key in keys:
            self._pinned.pop(key, None)


@dataclass(slots=True)
class Unnamed:
    """A model object without identity: a name for it, and the keys of its replies."""

    model: Callable[[], Any]
    """A weak reference."""
    name: str
    keys: set[str] = field(default_factory=set)


_numbers = itertools.count()


class UnnamedModels:
    """Names for model objects without an identity: one for each object, never given to a second one.

    By `id`, checked by a weak reference: chat models compare by value and cannot be hashed. Keeps no model alive (save
    one that takes no weak references), and drops the replies of a dead one when the next one comes.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._by_id: dict[int, Unnamed] = {}

    def of(self, model: object) -> Unnamed:
        """The entry of this object, made if it is new."""
        entry = self._by_id.get(id(model))
        if entry is None or entry.model() is not model:
            self._forget_dead()
            # NUL keeps these names apart from every identity that somebody may declare
            entry = self._by_id[id(model)] = Unnamed(_reference(model), f"\0object {next(_numbers)}")
        return entry

    def _forget_dead(self) -> None:
        dead = [number for number, entry in self._by_id.items() if entry.model() is None]
        for number in dead:
            self._memory.drop(self._by_id.pop(number).keys)


def _reference(model: object) -> Callable[[], Any]:
    try:
        return weakref.ref(model)
    except TypeError:
        return lambda: model
