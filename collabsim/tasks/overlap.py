"""Tells whether two questions are the same, within a set and between its parts.

In: questions and their options. Out: keys under which repeats are equal, and whether a question was asked before. Dev and
test are kept apart by the question alone, since options in another order, or one option changed, hide no leak. Only a
question that is a template ("Which of the two molecules ...?", asked over and over with other options) is compared
together with its options. Left out on purpose: likeness beyond spelling; paraphrases are not found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from collabsim.item import Item
from collabsim.scorers.reading.text import plain_characters, squeezed

TEMPLATE = 10
"""How many option sets one question must come with to count as a template."""

ContentKey: TypeAlias = tuple[str, tuple[str, ...]]


def question_key(question: str) -> str:
    """A question without what does not change it: case, spacing, quotes, width of characters, marks at its end."""
    text = plain_characters(question).casefold().replace('"', "").replace("'", "")
    return squeezed(text).rstrip(" .,:!?")


def content_key(question: str, choices: Mapping[str, str]) -> ContentKey:
    """A question with its options in any order: equal for repeats of one item."""
    return question_key(question), tuple(sorted(question_key(text) for text in choices.values()))


class Questions:
    """Questions that were asked, for telling what must not be asked again."""

    def __init__(self, keys: Iterable[ContentKey]) -> None:
        self._asked: dict[str, set[tuple[str, ...]]] = {}
        for question, options in keys:
            self._asked.setdefault(question, set()).add(options)

    @classmethod
    def of(cls, items: Iterable[Item]) -> Questions:
        """The questions of some items."""
        return cls(content_key(item.question, item.view.choices) for item in items)

    def __contains__(self, key: ContentKey) -> bool:
        """Whether the question of `key` was asked; for a template, whether it was with any of these options."""
        question, options = key
        sets = self._asked.get(question)
        if sets is None:
            return False
        return len(sets) < TEMPLATE or any(not set(options).isdisjoint(other) for other in sets)


def shared(items: Iterable[Item], others: Iterable[Item]) -> tuple[Item, ...]:
    """Those of `items` whose question `others` ask too: none of a training set may be in its test set."""
    asked = Questions.of(others)
    return tuple(item for item in items if content_key(item.question, item.view.choices) in asked)
