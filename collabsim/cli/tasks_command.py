"""`collabsim tasks`: the data sets at hand, or one with an item as a model sees it."""

from __future__ import annotations

import inspect
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from collabsim.errors import ConfigError, nearest
from collabsim.report.task_listing import golds, show_facts, show_item, show_list
from collabsim.tasks import Task, list_tasks, load_task
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
    settings = {**_defaults(name), **_settings(overrides)}
    task = load_task(name, base=Path(), **settings)
    _show_one(task, as_json=as_json)


def _defaults(name: str) -> dict[str, Any]:
    """A few items of a generator; all of a known set with both its parts, so that every repair is counted."""
    if name.startswith("reasoning_gym:"):
        return {"limit": SHOWN_ITEMS}
    known = name.removeprefix("moco:") in DATA_SETS and moco_folder() is not None
    return {"dev": {"limit": ALL}} if known else {}


def _settings(overrides: Sequence[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for override in overrides:
        key, separator, value = override.partition("=")
        if not separator:
            raise ConfigError(f"--set {override!r}: expected key=value, for example options={{min_terms: 2}}")
        settings[_setting(key.removeprefix("task."))] = _value(override, value)
    return settings


def _setting(key: str) -> str:
    known = [name for name in inspect.signature(load_task).parameters if name not in ("source", "base")]
    if key not in known:
        raise ConfigError(f"--set: a task has no key {key!r}{nearest(key, known)}; it has {', '.join(known)}")
    return key


def _value(override: str, text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"--set {override!r}: not valid YAML: {getattr(error, 'problem', error)}; mend it") from None


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
            "golds": golds(item),
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
