"""An item: a question, what a node may see of it, the scorer that reads and judges replies, and the reader of answers.

One scorer object per item serves votes, rewards and reports. Nodes get an `ItemView` and an `Answers` object, neither
of which knows the gold. The reader memoises extraction and grouping with bounds, because sweeps ask for the same few texts
in thousands of coalitions. Left out on purpose: how replies of a kind are read; see `scorers`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, Protocol, TypeAlias

from collabsim.request import Messages

Verdict: TypeAlias = Literal["right", "partial", "wrong", "unparsed", "error"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a reply, extracted from its text."""

    text: str
    """The extracted answer as written: `1/2`, `C`, `Paris`."""
    value: Any = None
    """Hashable canonical value of the scorer's own kind (a Fraction, a letter, a normalised string)."""


@dataclass(frozen=True, slots=True)
class Score:
    """The judgement of one text against one item."""

    score: float | None
    """In [0, 1]; None only when scoring itself failed for an infrastructure reason."""
    verdict: Verdict
    """right (score 1), partial, wrong, unparsed (score 0, counted apart), error (score None)."""
    extracted: str | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ItemView:
    """The part of an item that nodes see: never the gold."""

    id: str
    messages: Messages
    """The task's own prompt for this item, answer format included."""
    choices: Mapping[str, str]
    """Letter to option text; empty unless answers are letters of options."""
    kind: str


class Scorer(Protocol):
    """Reads answers out of texts and compares them. Never raises on any text; deterministic.

    `AnswerScorer` in `scorers` is the base of all that exist; its subclasses are the kinds of answers.
    """

    kind: str
    waits: bool
    """Whether `score` runs programs, so that it must not be called on an event loop."""
    gold_is_example: bool
    """Whether a gold is one right answer of many."""
    golds_title: str
    """Heading over `shown_golds`."""

    def extract(self, text: str, view: ItemView, finish: str = "stop") -> Answer | None:
        """The answer that `text` commits to, or None. A cut text (`finish != "stop"`) counts only what it declared."""

    def same(self, a: Answer, b: Answer, view: ItemView) -> bool:
        """Whether two answers are equivalent, gold or no gold. Symmetric and reflexive."""

    def score(self, text: str, item: Item, finish: str = "stop") -> Score:
        """The score of `text` as a final output for `item`."""

    def asked_form(self, gold: str, template: str | None = None) -> str:
        """`gold` as a reply in the form that the prompt asks for."""

    def written_forms(self, gold: str, template: str | None = None) -> list[str]:
        """Ways to write `gold` as a reply, the likeliest first."""

    def shown_golds(self, item: Item) -> list[str]:
        """The right answers of `item`, for a person to read."""


class Answers(Protocol):
    """Extraction and grouping for one item, without its gold; what `run.answers` is."""

    def extract(self, text: str, finish: str = "stop") -> Answer | None:
        """The answer that `text` commits to, or None."""

    def group(self, answers: Sequence[Answer]) -> list[list[int]]:
        """Indices of `answers` in classes of equivalent ones (transitively closed), classes by first member."""


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """One question with its gold and its scorer. Identity is content: `id` is a hash of question, choices and gold."""

    id: str
    question: str
    """The question as the data set words it; `view.messages` holds it in full."""
    gold: Any
    """Text, list of accepted texts, or the record that a verifier needs."""
    view: ItemView
    scorer: Scorer
    topic: str = ""
    difficulty: float | None = None
    """Logit scale, 0 = average; None lets simulated models derive one from the content."""
    chance: float = 0.0
    """Score of a blind guess: 1 / number of choices, else 0."""
    floor: float = 0.0
    """Outcome of a run in which nobody is present: 0, or `chance` when the task says so."""
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def answers(self) -> Answers:
        """The gold-free reader of answers that nodes get (memoised per item)."""
        return answers_for(self)

    def score(self, text: str, finish: str = "stop") -> Score:
        """The judgement of `text` as a final output for this item."""
        return self.scorer.score(text, self, finish)

    @property
    def gold_text(self) -> str:
        """One right answer as text, for simulated models and self-tests."""
        return self.gold if isinstance(self.gold, str) else str(self.gold[0])


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
        objects = tuple(answers)
        key = (id(self.__item), *map(id, objects))
        entry = _GROUPS.get(key)
        if entry is None:
            if len(_GROUPS) >= MOST_GROUPS:
                _GROUPS.clear()
            entry = _GROUPS[key] = (self.__item, objects, _classes(self.__item, objects))
        return [list(members) for members in entry[2]]


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
