"""`collabsim tasks`: the data sets at hand, or one with an item as a model sees it."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from collabsim.errors import ConfigError
from collabsim.pool import nearest
from collabsim.tasks import Task, list_tasks, load_task

SHOWN_ITEMS = 20
"""Items that are loaded to show a task that was given no limit."""


def run(name: str | None, overrides: Sequence[str], *, as_json: bool) -> None:
    """List all, or show one. Raises `DataError` or `ConfigError` for a task that cannot be loaded."""
    if name is None:
        _show_all(as_json=as_json)
        return
    settings = {"limit": SHOWN_ITEMS, **_settings(overrides)}
    _show_one(load_task(name, base=Path(), **settings), as_json=as_json)


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
    rows = [asdict(row) for row in list_tasks()]
    if as_json:
        sys.stdout.write(json.dumps(rows, indent=1) + "\n")
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in rows[0] if rows else ("name",):
        table.add_column(column)
    for row in rows:
        table.add_row(*("-" if value is None else str(value) for value in row.values()))
    console = Console()
    console.print(table)
    console.print(
        "\nAlso jsonl:PATH for your own file and hub:ID for a data set of the Hugging Face hub.", highlight=False
    )


def _show_one(task: Task, *, as_json: bool) -> None:
    item = task.items[0]
    facts = {
        "name": task.name,
        "kind": task.kind,
        "items": len(task.items),
        "dev_items": len(task.dev),
        "chance": round(sum(entry.chance for entry in task.items) / len(task.items), 4),
        "notes": dict(task.notes),
    }
    if as_json:
        shown = {
            "id": item.id,
            "messages": [message._asdict() for message in item.view.messages],
            "gold": item.gold_text,
        }
        sys.stdout.write(json.dumps({**facts, "example": shown}, indent=1, ensure_ascii=False) + "\n")
        return
    console = Console()
    for name, value in facts.items():
        console.print(f"{name:<10} {value}", markup=False, highlight=False)
    console.rule("an item as a model sees it", align="left")
    for message in item.view.messages:
        console.print(f"[bold]{message.role}[/bold]", highlight=False)
        console.print(message.content, markup=False, highlight=False)
    console.rule("gold", align="left")
    console.print(item.gold_text, markup=False, highlight=False)
