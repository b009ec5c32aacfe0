"""Lists the tasks that this machine can load by name, for `collabsim tasks`.

In: nothing. Out: one row per known data set, per further file of an installed MoCo and per generator. Known sets are counted
from their files as `load_task` would: items, chance rate, what was mended or left out; only the self-test of every item is
spared, which takes longer than a listing may. Left out on purpose: the hub, which has no end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from statistics import fmean

from collabsim.errors import PrerequisiteError
from collabsim.item import Item
from collabsim.tasks.data_sets import DATA_SETS, DataSet
from collabsim.tasks.generators import REFUSED, generator_names
from collabsim.tasks.moco import SUPPORTED, moco_sets, open_moco
from collabsim.tasks.overlap import Questions
from collabsim.tasks.selection import Selection


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task that can be named in a config."""

    source: str
    """What to write under `task.source`."""
    kind: str
    """Kind of answers, as far as it is known without reading the data."""
    topic: str
    """Area of a data set (reasoning, knowledge, coding, science), or category of a generator."""
    ready: bool
    """False for what cannot be loaded on this machine, or is not scored here."""
    road: str = ""
    """Where a known set comes from here: `moco`, `hub`, or empty when neither is installed."""
    test: int | None = None
    """Items to evaluate on; None where there is no end, or no file to count them in."""
    dev: int | None = None
    """Items for choosing and fitting, none of which asks a question of `test`."""
    chance: float | None = None
    """Score of a blind guess, in [0, 1]."""
    repairs: Mapping[str, int] = field(default_factory=dict)
    """Rows that were mended or left out, by reason, dev and test together."""


def list_tasks(*, counted: bool = True) -> list[TaskRow]:
    """Known data sets, other files of an installed MoCo, and all generators of an installed reasoning-gym.

    `counted`: whether the files of known sets are read for their numbers.
    """
    files = moco_sets()
    rows = [_known(data_set, data_set.name in files, counted=counted) for data_set in DATA_SETS.values()]
    for name, task_type in files.items():
        if name not in DATA_SETS:
            rows.append(TaskRow(f"moco:{name}", SUPPORTED.get(task_type, task_type), "", task_type in SUPPORTED))
    try:
        names = generator_names()
    except PrerequisiteError:
        return rows
    return rows + [
        TaskRow(f"reasoning_gym:{name}", "number or verifier", topic, name not in REFUSED)
        for name, topic in names.items()
    ]


def _known(data_set: DataSet, in_moco: bool, *, counted: bool) -> TaskRow:
    road = "moco" if in_moco else "hub" if find_spec("datasets") is not None else ""
    row = TaskRow(data_set.name, data_set.kind, data_set.area, bool(road), road)
    return _counted(row) if in_moco and counted else row


def _counted(row: TaskRow) -> TaskRow:
    source = open_moco(row.source)
    test, dev = (Selection(source, shuffle=source.shuffle, tested=False) for _ in range(2))
    items = _items(test, "test")
    dev_items = _items(dev, "dev", Questions(test.asked))
    repairs = Counter(test.notes) + Counter(dev.notes)
    return replace(
        row,
        test=len(items),
        dev=len(dev_items),
        chance=round(fmean(item.chance for item in items), 4),
        repairs=dict(sorted(repairs.items())),
    )


def _items(selection: Selection, split: str, taken: Questions | None = None) -> list[Item]:
    return [item for _, item in selection.collect(selection.source.rows(split, 0), taken=taken).values()]
