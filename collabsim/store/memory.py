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
    for as long as they are not dropped, for a second generation could say something else."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._recent: OrderedDict[str, tuple[Reply, int]] = OrderedDict()
        self._kept: dict[str, Reply] = {}

    def get(self, key: str) -> Reply | None:
        """The reply, which thereby counts as used."""
        entry = self._recent.get(key)
        if entry is None:
            return self._kept.get(key)
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
        self._kept[key] = reply

    def drop(self, keys: set[str]) -> None:
        """Forget replies that were kept."""
        for key in keys:
            self._kept.pop(key, None)


@dataclass(slots=True)
class Unnamed:
    """A model object without identity: a name for it, and the keys of what it said."""

    model: Callable[[], Any]
    """A weak reference."""
    name: str
    keys: set[str] = field(default_factory=set)


_numbers = itertools.count()


class UnnamedModels:
    """Names for model objects without an identity: one for each object, never given to a second one.

    By `id`, checked by a weak reference: chat models compare by value and cannot be hashed. Keeps no model alive (save
    one that takes no weak references), and drops what a dead one said when the next one comes.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._known: dict[int, Unnamed] = {}

    def of(self, model: object) -> Unnamed:
        """The entry of this object, made if it is new."""
        known = self._known.get(id(model))
        if known is None or known.model() is not model:
            self._forget_dead()
            # NUL keeps these names apart from every identity that somebody may declare
            known = self._known[id(model)] = Unnamed(_reference(model), f"\0object {next(_numbers)}")
        return known

    def _forget_dead(self) -> None:
        dead = [number for number, entry in self._known.items() if entry.model() is None]
        for number in dead:
            self._memory.drop(self._known.pop(number).keys)


def _reference(model: object) -> Callable[[], Any]:
    try:
        return weakref.ref(model)
    except TypeError:
        return lambda: model
