"""`collabsim tasks`: the data sets at hand, or one with an item as a model sees it."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from collabsim.config.assemble import load_section
from collabsim.config.expected import known_keys
from collabsim.config.overrides import apply_override
from collabsim.config.read import parse_section
from collabsim.config.schema import TaskConfig
from collabsim.errors import ConfigError, nearest
from collabsim.report.task_listing import show_facts, show_item, show_list
from collabsim.tasks import Task, list_tasks
from collabsim.tasks.data_sets import DATA_SETS
from collabsim.tasks.moco import moco_folder
from collabsim.tasks.option_order import gold_histogram

SHOWN_ITEMS = 20
"""Items that are drawn to show a generator that was given no limit."""

ALL = 1 << 31
"""More dev items than any set has."""


def run(name: str | None, overrides: Sequence[str], *, as_json: bool) -> None:
    """List all, or show one. Raises `DataError` or `ConfigError` for a task that cannot be loaded."""
    if name is None:
        _show_all(as_json=as_json)
        return
    _show_one(load_section(_section(name, overrides), Path()), as_json=as_json)


def _section(name: str, overrides: Sequence[str]) -> TaskConfig:
    """The `task:` section of this source: its defaults here, and `--set` as in a config, with or without `task.` before
    a key."""
    data: dict[str, Any] = {"source": name, **_defaults(name)}
    known = [key for key in known_keys(TaskConfig) if key != "source"]
    for override in overrides:
        key = (override := override.strip().removeprefix("task.")).partition("=")[0].partition(".")[0].strip()
        if "=" in override and key not in known:
            raise ConfigError(f"--set: a task has no key {key!r}{nearest(key, known)}; it has {', '.join(known)}")
        apply_override(data, override, TaskConfig, example="key=value, for example options={min_terms: 2}")
    return parse_section(TaskConfig, data, "task")


def _defaults(name: str) -> dict[str, Any]:
    """A few items of a generator; all of a known set with both its parts, so that every repair is counted."""
    if name.startswith("reasoning_gym:"):
        return {"limit": SHOWN_ITEMS}
    known = name.removeprefix("moco:") in DATA_SETS and moco_folder() is not None
    return {"dev": {"limit": ALL}} if known else {}


def _show_all(*, as_json: bool) -> None:
    rows = list_tasks()
    if as_json:
        sys.stdout.write(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    else:
        show_list(rows, Console())


def _show_one(task: Task, *, as_json: bool) -> None:
    item = task.items[0]
    letters = gold_histogram(task.items)
    asked_for_all = {"short_of_limit", "dev_short_of_limit"}
    kinds = dict(Counter(item.view.kind for item in task.items).most_common())
    facts = {
        "name": task.name,
        "kind": task.kind,
        "kinds": kinds,
        "items": len(task.items),
        "dev_items": len(task.dev),
        "chance": round(task.chance, 4),
        "golds": dict(letters.counts),
        "majority": letters.majority if letters.flagged else None,
        "notes": {name: count for name, count in task.notes.items() if name not in asked_for_all},
    }
    if as_json:
        shown = {
            "id": item.id,
            "messages": [message._asdict() for message in item.view.messages],
            "gold": item.gold_text,
            "golds": item.scorer.shown_golds(item),
        }
        sys.stdout.write(json.dumps({**facts, "example": shown}, indent=1, ensure_ascii=False) + "\n")
        return
    console = Console()
    hidden = {"majority"} | ({"kinds"} if len(kinds) == 1 else set())
    show_facts({name: value for name, value in facts.items() if name not in hidden and value != {}}, console)
    if letters.flagged:
        console.print(
            f"[yellow]{letters.share:.0%} of the golds are {letters.majority}: a model that always says so "
            "is right as often; set shuffle_options=true[/yellow]",
            highlight=False,
        )
    show_item(item, console)
