"""Turns rows of a source into items, and chooses those that a run gets.

In: rows. Out: distinct, tested items and counts of everything that was mended or left out. Questions are compared by
normalised content. Items are chosen by H(seed, item id), so neither a file's order nor a later filter of other rows
changes who is in. Left out on purpose: reading files; see `sources.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from collabsim.errors import ConfigError, DataError, nearest
from collabsim.item import Item
from collabsim.seeds import derive_seed, digest
from collabsim.tasks.building import build_item
from collabsim.tasks.option_order import shuffled
from collabsim.tasks.overlap import ContentKey, Questions, content_key, question_key
from collabsim.tasks.record import Record, Unusable
from collabsim.tasks.sources import Source

_OWN_FIELDS = ("topic", "kind", "difficulty")


_Distinct = dict[ContentKey, tuple[Record, Item]]


@dataclass
class Selection:
    """Collects items from rows, counting repairs and exclusions in `notes`."""

    source: Source
    kind: str | None = None
    prompt: str | None = None
    filter: Mapping[str, Any] = field(default_factory=dict)
    shuffle: bool = False
    """Whether options are put into an order that follows from the item's content."""
    tested: bool = True
    """False to skip the self-test of every item, for counting only."""
    notes: Counter[str] = field(default_factory=Counter)
    asked: list[ContentKey] = field(default_factory=list)
    """Every question that was read, of items that were left out too."""

    def collect(
        self, rows: Iterable[Mapping[str, Any]], *, want: int | None = None, taken: Questions | None = None
    ) -> dict[str, tuple[Record, Item]]:
        """Distinct usable items by id, the first `want` of them.

        `taken`: questions that must not occur again. A question that comes with different golds is left out wholly.
        Raises `ConfigError` for a filter on a field that no row has.
        """
        distinct: _Distinct = {}
        conflicting: set[ContentKey] = set()
        known: dict[str, None] = {}
        for row in rows:
            record = self._record(row, known)
            if record is None:
                continue
            key = content_key(record.question, record.choices)
            self.asked.append(key)
            if taken is not None and key in taken:
                self.notes["dev_overlap"] += 1
            elif not self._admit(key, record, distinct):
                conflicting.add(key)
            if want is not None and len(distinct) == want:
                break
        for name in self.filter:
            if known and name not in known:
                raise ConfigError(
                    f"task.filter: no field {name!r}{nearest(name, known)}; items have {', '.join(known)}"
                )
        self.notes["conflicting_golds"] += len(conflicting)
        return {item.id: (record, item) for key, (record, item) in distinct.items() if key not in conflicting}

    def _admit(self, key: ContentKey, record: Record, distinct: _Distinct) -> bool:
        """Put a record's item into `found`, unless it is a repeat or unusable. False for a repeat with another gold."""
        scorer = self.source.scorer()
        if key in distinct and scorer is not None and scorer.gold_is_example:
            self.notes["repeated_question"] += 1
            return True
        item = self._item(record)
        if item is None:
            return True
        if key in distinct:
            self.notes["repeated_question"] += 1
            return _same_gold(distinct[key][1], item)
        self.notes.update(record.repairs)
        distinct[key] = record, item
        return True

    def _record(self, row: Mapping[str, Any], known: dict[str, None]) -> Record | None:
        try:
            record = self.source.record(row)
        except Unusable as reason:
            self.notes[str(reason)] += 1
            return None
        known.update(dict.fromkeys([*_OWN_FIELDS, *record.fields]))
        return reordered(record) if self.shuffle and record.choices else record

    def _item(self, record: Record) -> Item | None:
        scorer = self.source.scorer()
        try:
            item = build_item(record, kind=self.kind, prompt=self.prompt, scorer=scorer, tested=self.tested)
        except Unusable as reason:
            self.notes[str(reason)] += 1
            return None
        if not all(_allowed(item, name, wanted) for name, wanted in self.filter.items()):
            self.notes["filtered_out"] += 1
            return None
        return item

    def counts(self) -> str:
        """The notes as words for a message: `3 null_gold, 12 filtered_out`."""
        return ", ".join(f"{count} {name}" for name, count in sorted(self.notes.items()) if count) or "no row left out"


def reordered(record: Record) -> Record:
    """A record with its options in an order of its own: the same wherever and in whatever order they stand in a file."""
    content = content_key(record.question, record.choices)
    choices, gold = shuffled(record.choices, record.gold, derive_seed("option order", *content[1], content[0]))
    return replace(record, choices=choices, gold=gold)


def _same_gold(a: Item, b: Item) -> bool:
    """Whether two repeats of one question have one gold, by option text where letters may differ; examples may differ."""
    if a.scorer.gold_is_example:
        return True
    if a.view.choices and b.view.choices:
        return _gold_texts(a) == _gold_texts(b)
    return a.score(f"Answer: {b.gold_text}").score == 1.0


def _gold_texts(item: Item) -> set[str]:
    letters = (item.gold,) if isinstance(item.gold, str) else item.gold
    return {question_key(item.view.choices[letter]) for letter in letters}


def _allowed(item: Item, name: str, wanted: Any) -> bool:
    own = {"topic": item.topic, "kind": item.view.kind, "difficulty": item.difficulty}
    value = item.extra[name] if name in item.extra and name not in own else own.get(name)
    values = wanted if isinstance(wanted, list | tuple | set | frozenset) else (wanted,)
    return any(value == one or str(value) == str(one) for one in values)


def choose(items: Iterable[Item], limit: int | None, seed: int) -> tuple[Item, ...]:
    """`limit` of the items (all without one), in the order of H(seed, id): a smaller limit gives a prefix."""
    ordered = sorted(items, key=lambda item: digest(["choose", seed, item.id]))
    return tuple(ordered if limit is None else ordered[:limit])


def need(chosen: Sequence[Item], wanted: int | None, what: str, selection: Selection) -> None:
    """Raises `DataError` when no item is left, or when a generator has fewer distinct ones than asked for."""
    if chosen and not (selection.source.endless and wanted is not None and len(chosen) < wanted):
        return
    asked = f" of the {wanted} asked for" if wanted is not None else ""
    raise DataError(
        f"{selection.source.name}: {len(chosen)} distinct items for {what}{asked} ({selection.counts()}); "
        f"{_advice(selection, chosen)}"
    )


def _advice(selection: Selection, chosen: Sequence[Item]) -> str:
    if not selection.source.endless:
        return "check task.split, task.filter and the file"
    if not chosen and selection.notes["null_gold"]:
        return "it tells no right answer, which a task needs; take another generator"
    return "ask for fewer or widen task.options"
