"""The answer key of simulated models: which item a conversation is about.

In: items to learn, then conversations. Out: the item a conversation asks, the turn that asks it, and what else that
turn says. Matching is by content alone: a prompt word by word, else the longest known question inside a turn, latest
turn first (few-shot examples come earlier). Left out on purpose: fuzzy matching. A rephrased question is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from collabsim.item import Item
from collabsim.request import Message, Messages

_QUOTE_MARK = re.compile(r"(?m)^> ?")
_BEGINNING = re.compile(r"(?<![^\W_])\S|[^\w\s]")  # never within a word or number: `1 + 2` is not inside `11 + 2`
_ANCHOR = 32  # characters by which a text is looked up before the whole is compared


@dataclass(frozen=True, slots=True)
class Match:
    """An item found in a conversation."""

    item: Item
    turn: int
    """Index of the user message that asks it."""
    rest: str
    """What that message says besides the question and the task's own prompt."""


class AnswerKey:
    """An immutable index from prompts and questions to items; `with_items` makes a larger one."""

    def __init__(self, items: Iterable[Item] = ()) -> None:
        self._items = {item.id: item for item in items}
        self._prompts: dict[str, list[Item]] = {}
        self._texts: dict[str, list[Item]] = {}
        for item in self._items.values():
            prompt = _prompt(item)
            if prompt.strip():
                self._prompts.setdefault(prompt, []).append(item)
            for text in {prompt.strip(), item.question.strip()} - {""}:
                self._texts.setdefault(text, []).append(item)
        self._width = min([_ANCHOR, *map(len, self._texts)])
        self._starts: dict[str, list[str]] = {}
        for text in sorted(self._texts, key=len, reverse=True):
            self._starts.setdefault(text[: self._width], []).append(text)

    def __len__(self) -> int:
        return len(self._items)

    def with_items(self, items: Iterable[Item]) -> AnswerKey:
        """A key of these items too; itself when it knows them all."""
        new = [item for item in items if item.id not in self._items]
        return AnswerKey([*self._items.values(), *new]) if new else self

    def match(self, messages: Messages) -> Match | None:
        """The item that the conversation asks, or None when it asks no known one, or several with different golds."""
        for turn in range(len(messages) - 1, -1, -1):
            message = messages[turn]
            found = self._match_turn(message, turn) if message.role == "user" else None
            if found is not None:
                return found
        return None

    def _match_turn(self, message: Message, turn: int) -> Match | None:
        exact = _one_of(self._prompts.get(message.content, ()), message.content)
        if exact is not None:
            return Match(exact, turn, "")
        for content in (message.content, _QUOTE_MARK.sub("", message.content)):
            text = self._longest_in(content)
            item = _one_of(self._texts[text], content) if text else None
            if text and item is not None:
                return Match(item, turn, _besides(text, content, item))
        return None

    def _longest_in(self, content: str) -> str:
        """The longest known text inside `content`, on word boundaries.

        Looks up a fixed number of characters at each place where a text can begin, so the cost does not grow with the
        number of items.
        """
        longest = ""
        for begin in _BEGINNING.finditer(content):
            start = begin.start()
            for text in self._starts.get(content[start : start + self._width], ()):
                if len(text) <= len(longest):
                    break
                if content.startswith(text, start) and _ends_on_boundary(content, start + len(text)):
                    longest = text
        return longest


def _prompt(item: Item) -> str:
    said = [message.content for message in item.view.messages if message.role == "user"]
    return said[-1] if said else ""


def _ends_on_boundary(content: str, end: int) -> bool:
    return end == len(content) or not (content[end - 1].isalnum() and content[end].isalnum())


def _one_of(items: Iterable[Item], content: str) -> Item | None:
    """The one item meant by a text that several items may share: the one whose options are all there."""
    candidates = list(items)
    if len(candidates) > 1:
        shown = [item for item in candidates if all(option in content for option in item.view.choices.values())]
        candidates = shown or candidates
    if len({item.gold_text for item in candidates}) != 1:
        return None
    return min(candidates, key=lambda item: item.id)


def _besides(text: str, content: str, item: Item) -> str:
    rest = content.replace(text, "\n", 1)
    if text == _prompt(item).strip():
        return rest
    own = {line.strip() for message in item.view.messages for line in message.content.splitlines()}
    return "\n".join(line for line in rest.splitlines() if line.strip() not in own)
