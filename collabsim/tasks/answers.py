"""Answers of one item without its gold: what nodes read replies with and vote by.

In: an item. Out: an object that extracts answers and groups equal ones. Both are memoised with bounds, because sweeps ask
for the same few texts in thousands of coalitions. Left out on purpose: the gold, and any rule of a vote.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from collabsim.tasks.item import Answer, Item


class ItemAnswers:
    """The gold-free reader of answers for one item; nodes see neither the item nor its gold through it."""

    __slots__ = ("__item",)

    def __init__(self, item: Item) -> None:
        self.__item = item

    def extract(self, text: str, finish: str = "stop") -> Answer | None:
        """The answer that `text` commits to, or None."""
        return _extracted(self.__item, text, finish)

    def group(self, answers: Sequence[Answer]) -> list[list[int]]:
        """Indices of `answers` in classes of equivalent ones (transitively closed), classes by first member."""
        known = tuple(answers)
        key = (id(self.__item), *map(id, known))
        held = _GROUPS.get(key)
        if held is None:
            if len(_GROUPS) >= MOST_GROUPS:
                _GROUPS.clear()
            held = _GROUPS[key] = (self.__item, known, _classes(self.__item, known))
        return [list(members) for members in held[2]]


MOST_GROUPS = 1 << 16
"""Groupings that are remembered."""

_Classes = tuple[tuple[int, ...], ...]
_GROUPS: dict[tuple[int, ...], tuple[Item, tuple[Answer, ...], _Classes]] = {}
# By object, since extraction hands out one object a text, and hashing fractions costs more than the lookup. An entry holds
# the objects whose ids are its key, so that no other object can have them while it lives.


@lru_cache(maxsize=1 << 14)
def answers_for(item: Item) -> ItemAnswers:
    """The reader of answers for `item`."""
    return ItemAnswers(item)


@lru_cache(maxsize=1 << 16)
def _extracted(item: Item, text: str, finish: str) -> Answer | None:
    # An empty reply commits to nothing, whatever kind of answer is asked for.
    return item.scorer.extract(text, item.view, finish) if text.strip() else None


def _classes(item: Item, answers: tuple[Answer, ...]) -> _Classes:
    """Connected components of `scorer.same` over the answers, by union-find on their distinct ones."""
    distinct = list(dict.fromkeys(answers))
    root = list(range(len(distinct)))

    def find(index: int) -> int:
        while root[index] != index:
            index = root[index]
        return index

    for later in range(len(distinct)):
        for earlier in range(later):
            a, b = find(earlier), find(later)
            if a != b and item.scorer.same(distinct[earlier], distinct[later], item.view):
                root[max(a, b)] = min(a, b)
    component = {answer: find(index) for index, answer in enumerate(distinct)}
    classes: dict[int, list[int]] = {}
    for index, answer in enumerate(answers):
        classes.setdefault(component[answer], []).append(index)
    return tuple(map(tuple, classes.values()))
