"""A task: the items that a system is run on, and the items for choosing and fitting.

In: a source and what to take of it. Out: a frozen `Task` whose content depends on the source's content, never on the order
of a file. Nothing is mended in silence: `notes` counts every repair and exclusion. Left out on purpose: scoring, which is
the items' own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from collabsim.arguments import check_kind, checked, checked_names
from collabsim.errors import ConfigError, DataError, nearest
from collabsim.item import Item
from collabsim.scorers import scorer_for
from collabsim.seeds import digest
from collabsim.tasks.building import build_item
from collabsim.tasks.generators import GeneratorSource
from collabsim.tasks.overlap import Questions, shared
from collabsim.tasks.prompts import check_template
from collabsim.tasks.record import Record
from collabsim.tasks.reference_runs import SelfTest, run_references
from collabsim.tasks.selection import Selection, choose, need
from collabsim.tasks.source_schemes import open_source
from collabsim.tasks.sources import DEV_SPLITS, Source

Floor = Literal["zero", "chance"]

GENERATED = 100
"""Items drawn from a generator when no limit is given."""

_Selected = dict[str, tuple[Record, Item]]


@checked_names
@dataclass(frozen=True, eq=False)
class Task:
    """Items with their golds, and what an empty coalition is worth on them."""

    name: str
    items: tuple[Item, ...]
    dev: tuple[Item, ...] = ()
    """Disjoint from `items` by normalised question."""
    kind: str = ""
    """The kind of all answers, or `mixed`."""
    floor: Floor = "zero"
    """What a run in which nobody is present is worth: 0, or the score of a blind guess (put into every item)."""
    notes: Mapping[str, int] = field(default_factory=dict)
    """How many rows were mended or left out, by reason."""

    def __post_init__(self) -> None:
        for name, kind in {"name": str, "items": Sequence[Item], "dev": Sequence[Item], "floor": Floor}.items():
            check_kind(name, getattr(self, name), kind)
        if not self.items:
            raise DataError(f"task {self.name!r} has no items; check its filter and limit")
        if self.floor == "chance":
            for name in ("items", "dev"):
                at_chance = tuple(replace(item, floor=item.chance) for item in getattr(self, name))
                object.__setattr__(self, name, at_chance)
        if not self.kind:
            kinds = {item.view.kind for item in self.items}
            object.__setattr__(self, "kind", kinds.pop() if len(kinds) == 1 else "mixed")

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def _by_id(self) -> dict[str, Item]:
        return {item.id: item for item in (*self.items, *self.dev)}

    def item(self, item_id: str) -> Item:
        """The item (or dev item) with this id. Raises `DataError` when there is none."""
        try:
            return self._by_id[item_id]
        except KeyError:
            raise DataError(f"task {self.name!r} has no item {item_id!r}; was the data changed?") from None

    @property
    def chance(self) -> float:
        """Mean score of a blind guess over the items."""
        return fmean(item.chance for item in self.items)

    @property
    def golds(self) -> dict[str, int]:
        """How often each letter is the (first) right one, most frequent first; empty unless items have options."""
        letters = Counter(item.gold_text for item in self.items if item.view.choices)
        return dict(sorted(letters.items(), key=lambda pair: (-pair[1], pair[0])))

    @cached_property
    def identity(self) -> str:
        """Digest of the items' ids and prompts."""
        return _identity(self.items)

    @cached_property
    def dev_identity(self) -> str:
        """Digest of the dev items' ids and prompts."""
        return _identity(self.dev)


def _identity(items: Sequence[Item]) -> str:
    return digest(
        sorted(
            [item.id, item.view.kind, item.floor, [list(message) for message in item.view.messages]] for item in items
        )
    )


@checked(
    source="name a known data set, `jsonl:PATH` or `reasoning_gym:NAME`, or give rows",
    dev=None,
    limit=None,
    floor=None,
)
def load_task(
    source: str | Sequence[Mapping[str, Any]],
    *,
    options: Mapping[str, Any] | None = None,
    split: str = "test",
    limit: int | None = None,
    seed: int = 0,
    filter: Mapping[str, Any] | None = None,
    dev: Mapping[str, int] | None = None,
    floor: Floor = "zero",
    prompt: str | None = None,
    fields: Mapping[str, str] | None = None,
    kind: str | None = None,
    shuffle_options: bool | None = None,
    self_test: SelfTest = "sample",
    base: str | Path | None = None,
) -> Task:
    """The task that a source and these settings describe.

    `source`: the name of a known data set, `jsonl:PATH`, `reasoning_gym:NAME`, `moco:NAME`, `hub:ID`, or rows in memory.
    `limit` items are chosen by H(seed, item id); without one all are taken, or 100 of a generator. `dev` is
    `{"limit": n, "seed": s}`: items from the source's own dev split, else from those not chosen, always disjoint by
    question. `filter`: field to a value or values. `shuffle_options`: whether each item's options come in an order of its
    own; by default where a data set's right options stand in a fixed place. `self_test`: how many programs' reference
    solutions are run. `base`: the folder that relative paths start from.

    Raises `ConfigError` for settings that cannot be meant, `DataError` for data that cannot be read or leave no item,
    `PrerequisiteError` for a package that is missing.
    """
    _check_settings(limit, dev, floor)
    origin = open_source(source, options=options, split=split, base=base, fields=fields)
    _check_kind(kind, origin)
    prompt = origin.prompt if prompt is None else prompt
    check_template(prompt, choices=False)
    shuffle = origin.shuffle if shuffle_options is None else shuffle_options
    selection = Selection(
        origin, kind=None if origin.endless else kind, prompt=prompt, filter=dict(filter or {}), shuffle=shuffle
    )
    if origin.endless:
        items, dev_items = _generated(selection, split, limit, seed, dev, kind)
    else:
        items, dev_items = _tabled(selection, split, limit, seed, dev)
    check_template(prompt, choices=any(item.view.choices for item in (*items, *dev_items)))
    items, dev_items = (_with_sound_references(chosen, self_test, selection) for chosen in (items, dev_items))
    notes = {name: count for name, count in sorted(selection.notes.items()) if count}
    return Task(origin.name, items, dev_items, floor=floor, notes=notes)


def _check_settings(limit: int | None, dev: Mapping[str, int] | None, floor: str) -> None:
    check_kind("dev", dev, Mapping[str, Any] | None, 'write {"limit": 50, "seed": 2}')
    known = ("limit", "seed")
    for key in dev or {}:
        if key not in known:
            raise ConfigError(f"task.dev: unknown key {key!r}{nearest(key, known)}; known: limit, seed")
    check_kind("task.dev.seed", (dev or {}).get("seed", 0), int)
    if dev is not None and "limit" not in dev:
        raise ConfigError("task.dev: expected a limit, got none; say how many items to keep for choosing and fitting")
    for name, value in (("task.limit", limit), ("task.dev.limit", (dev or {}).get("limit"))):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise ConfigError(f"{name}: expected at least 1 item, got {value!r}; leave it out to take all")
    if floor not in ("zero", "chance"):
        raise ConfigError(f"task.floor: expected zero or chance, got {floor!r}{nearest(floor, ('zero', 'chance'))}")


def _check_kind(kind: str | None, source: Source) -> None:
    """Raises `ConfigError` for a kind that does not exist, or that the source's own scorer cannot be replaced by."""
    own = source.scorer()
    if kind is None or (own is not None and kind == own.kind):
        return
    scorer_for(kind)
    if own is not None and kind not in source.other_kinds:
        raise ConfigError(
            f"task.kind: {source.name} has verified answers; expected {', '.join(source.other_kinds)} or {own.kind}, "
            f"got {kind!r}"
        )


def _with_sound_references(items: tuple[Item, ...], how: SelfTest, selection: Selection) -> tuple[Item, ...]:
    """The items without those whose reference solution fails its own tests."""
    references = run_references(items, how, selection.prompt)
    selection.notes["unscorable_gold"] += len(references.failing)
    selection.notes["untested_program"] += references.untested
    return tuple(item for item in items if item.id not in references.failing)


def _items(selected: _Selected) -> list[Item]:
    return [item for _, item in selected.values()]


def _tabled(
    selection: Selection, split: str, limit: int | None, seed: int, dev: Mapping[str, int] | None
) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """Items and dev items of a source whose rows are all there."""
    source = selection.source
    everything = _items(selection.collect(source.rows(split, seed)))
    if not everything:
        need([], limit, f"split {split!r}", selection)
    dev_split = next((name for name in DEV_SPLITS if name in source.splits and name != split), None)
    if dev is not None and dev_split is not None:
        taken = Questions(selection.asked)
        apart = replace(selection, notes=Counter(), asked=[])
        dev_pool = _items(apart.collect(source.rows(dev_split, seed), taken=taken))
        selection.notes.update({_dev_name(name): count for name, count in apart.notes.items()})
        items, dev_items = choose(everything, limit, seed), choose(dev_pool, dev["limit"], dev.get("seed", 0))
    elif dev is not None:
        items, dev_items = _divided(everything, limit, seed, dev, selection)
    else:
        items, dev_items = choose(everything, limit, seed), ()
    need(items, limit, f"split {split!r}", selection)
    if dev is not None:
        need(dev_items, dev["limit"], "task.dev", selection)
        selection.notes["dev_short_of_limit"] = dev["limit"] - len(dev_items)
    selection.notes["short_of_limit"] = 0 if limit is None else limit - len(items)
    return items, dev_items


def _dev_name(note: str) -> str:
    return note if note.startswith("dev_") else f"dev_{note}"


def _divided(
    everything: Sequence[Item], limit: int | None, seed: int, dev: Mapping[str, int], selection: Selection
) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """Items and dev items out of one undivided set; without a limit dev is taken out first and the rest are the items."""
    dev_seed = dev.get("seed", 0)
    if limit is None:
        first, rest_limit, rest_seed = choose(everything, dev["limit"], dev_seed), None, seed
    else:
        first, rest_limit, rest_seed = choose(everything, limit, seed), dev["limit"], dev_seed
    overlapping = {item.id for item in shared(everything, first)}
    rest = [item for item in everything if item.id not in overlapping]
    selection.notes["dev_overlap"] += len(everything) - len(first) - len(rest)
    if not rest:
        raise DataError(
            f"{selection.source.name}: {len(everything)} items are too few for task.limit {limit} and task.dev.limit "
            f"{dev['limit']}, which must not share any; lower one of them"
        )
    second = choose(rest, rest_limit, rest_seed)
    return (second, first) if limit is None else (first, second)


def _generated(
    selection: Selection, split: str, limit: int | None, seed: int, dev: Mapping[str, int] | None, kind: str | None
) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """Items and dev items drawn from a generator, in the order of H(seed, id)."""
    source = selection.source
    assert isinstance(source, GeneratorSource)
    want = GENERATED if limit is None else limit
    selected = selection.collect(source.rows(split, seed), want=want)
    need(_items(selected), want, f"split {split!r}", selection)
    dev_selected: _Selected = {}
    if dev is not None:
        taken = Questions(selection.asked)
        dev_selected = selection.collect(source.rows("dev", dev.get("seed", 0)), want=dev["limit"], taken=taken)
        need(_items(dev_selected), dev["limit"], "task.dev", selection)
    kind = kind or source.kind_of(record.gold for record, _ in (*selected.values(), *dev_selected.values()))
    if kind != source.scorer().kind:
        selected, dev_selected = (_rebuilt(drawn, kind, selection.prompt) for drawn in (selected, dev_selected))
    return choose(_items(selected), None, seed), choose(_items(dev_selected), None, (dev or {}).get("seed", 0))


def _rebuilt(drawn: _Selected, kind: str, prompt: str | None) -> _Selected:
    records = [replace(record, gold=record.gold.text, kind=kind) for record, _ in drawn.values()]
    items = [build_item(record, prompt=prompt) for record in records]
    return {item.id: (record, item) for record, item in zip(records, items, strict=True)}
