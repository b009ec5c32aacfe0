"""Items to train on that are in neither the task's items nor its dev items.

In: the task section of a config and the task made of it. Out: items, disjoint from both by question. Left out on
purpose: the use of the items.
"""

from __future__ import annotations

from pathlib import Path

from collabsim.config.schema import TaskConfig
from collabsim.errors import DataError
from collabsim.item import Item
from collabsim.tasks import Task, load_task
from collabsim.tasks.overlap import question_key
from collabsim.tasks.selection import choose
from collabsim.tasks.source_schemes import open_source

from .settings import ItemsConfig


def load_train_items(config: TaskConfig, base: Path, task: Task, selection: ItemsConfig) -> tuple[Item, ...]:
    """`selection.limit` items (or as many as are left) of the same source, chosen by H(seed, item id).

    Raises `DataError` when none is left, and what `load_task` raises.
    """
    origin = open_source(config.source, options=config.options, split=config.split, base=base, fields=config.fields)
    split = selection.split or ("train" if origin.endless or "train" in origin.splits else config.split)
    excluded = {question_key(item.question) for item in (*task.items, *task.dev)}
    candidates = load_task(
        config.source,
        base=base,
        options=config.options,
        split=split,
        # A generator is asked for as many more as could be taken already; a table gives all it has.
        limit=selection.limit + len(excluded) if origin.endless else None,
        seed=selection.seed,
        filter=config.filter,
        floor=config.floor,
        prompt=config.prompt,
        fields=config.fields,
        kind=config.kind or (task.kind if origin.endless and task.kind != "mixed" else None),
        shuffle_options=config.shuffle_options,
        self_test=config.self_test,
    )
    left = [item for item in candidates.items if question_key(item.question) not in excluded]
    if not left:
        raise DataError(
            f"task {task.name!r} leaves no item to train on: all {len(candidates.items)} of split {split!r} are its items or "
            "dev items; lower task.limit or task.dev.limit, or name another train.items.split"
        )
    return tuple(choose(left, selection.limit, selection.seed))


def check_disjoint(items: tuple[Item, ...], task: Task) -> None:
    """Raises `DataError` when an item to train on is one of the task's items or dev items, by question."""
    excluded = {question_key(item.question) for item in (*task.items, *task.dev)}
    shared = [item.question for item in items if question_key(item.question) in excluded]
    if shared:
        raise DataError(
            f"{len(shared)} of {len(items)} items to train on are among the task's items or dev items (first: "
            f"{shared[0][:80]!r}); leave them out"
        )
