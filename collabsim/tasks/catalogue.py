"""What tasks this machine can load by name, for `collabsim tasks`.

In: nothing. Out: one row per generator and per installed data set; no data set is read and none is generated. Left out on
purpose: the hub, which has no end.
"""

from __future__ import annotations

from dataclasses import dataclass

from collabsim.errors import PrerequisiteError
from collabsim.tasks.generators import REFUSED, generator_names
from collabsim.tasks.moco import SUPPORTED, moco_sets


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task that can be named in a config."""

    source: str
    """What to write under `task.source`."""
    kind: str
    """Kind of answers, as far as it is known without reading the data."""
    topic: str
    items: str
    """How many items: `endless` for a generator, else empty (not known before loading)."""
    ready: bool
    """False for a data set whose answers are not scored here, and for a generator that is not offered."""


def list_tasks() -> list[TaskRow]:
    """All generators of reasoning-gym and all data sets of an installed MoCo; what is not installed is left out."""
    rows = []
    try:
        for name, topic in generator_names().items():
            rows.append(TaskRow(f"reasoning_gym:{name}", "number or verifier", topic, "endless", name not in REFUSED))
    except PrerequisiteError:
        pass
    for name, task_type in moco_sets().items():
        rows.append(TaskRow(f"moco:{name}", SUPPORTED.get(task_type, task_type), "", "", task_type in SUPPORTED))
    return rows
