"""The table of a sweep in the terminal.

In: the content of `values.json`. Out: rich tables. Nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

COLUMNS = (
    ("individual", "individual"),
    ("shapley", "Shapley"),
    ("leave_one_out", "leave-one-out"),
    ("leave_one_out_split", "rest split"),
)
RATES = ("unparsed", "truncated")
"""Rates shown beside every accuracy, with the chance rate."""


def show_values(values: Mapping[str, Any], console: Console) -> None:
    """Print the values of all players, and the meaning of the numbers."""
    definitions = values["definitions"]
    console.print(
        f"[bold]{definitions['protocol']}[/bold] · {values['n_items']} items · {len(values['players'])} players · "
        f"method {values['method']}",
        highlight=False,
    )
    console.print(_players(values))
    for warning in values.get("warnings", ()):
        console.print(f"[yellow]warning:[/yellow] {escape(warning)}", highlight=False)
    _print_game(values, console)
    _print_relation(values["relation"], console)
    _print_meaning(values, console)


def _players(values: Mapping[str, Any]) -> Table:
    table = Table(header_style="bold", box=None, padding=(0, 1, 0, 0))
    table.add_column("player", no_wrap=True)
    columns = [(key, title) for key, title in COLUMNS if any((values.get(key) or {}).values())]
    for _, title in columns:
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("unparsed", justify="right", no_wrap=True)
    for player in values["players"]:
        cells = [_estimate(values[key][player]) for key, _ in columns]
        table.add_row(player, *cells, _unparsed(values["rates"], player))
    return table


def _unparsed(rates: Mapping[str, Any], player: str) -> str:
    """Share of a player's own answers that could not be read, and of those that were cut; nothing for several seats."""
    if player not in rates["unparsed"]:
        return "-"
    cut = rates.get("truncated", {}).get(player, 0.0)
    return f"{rates['unparsed'][player]:.0%}\n[dim]{cut:.0%} cut[/dim]"


def _estimate(estimate: Mapping[str, Any] | None) -> str:
    if estimate is None:
        return "-"
    low, high = estimate["ci95"]
    mark = " [yellow]rare[/yellow]" if estimate["rare"] else ""
    return f"{estimate['value']:.3f}{mark}\n[dim]\\[{low:.3f}, {high:.3f}][/dim]"


def _print_game(values: Mapping[str, Any], console: Console) -> None:
    v, gap = values["v"], values["efficiency_gap"]
    rates = values["rates"]
    shares = [f"{rates[name]['system']:.0%} {name}" for name in RATES if name in rates]
    full = max(v, key=lambda coalition: coalition.count("+") if coalition else -1)
    console.print(
        f"v(all) = {v[full]:.3f}   v(empty) = {v.get('', 0.0):.3f}   "
        f"sum of values - (v(all) - v(empty)) = {gap if abs(gap) > 1e-9 else 0:.3g}   "
        f"chance {rates['chance']:.2f}   finals: {', '.join(shares)}",
        highlight=False,
    )
    if not values.get("paired", True):
        console.print(
            "[yellow]not paired: some models were called directly and not through a seat, so coalitions are compared on "
            "different samples. The intervals are valid but wide; use SeatModel in the application[/yellow]",
            highlight=False,
        )
    if unreachable := values["definitions"].get("off_path"):
        console.print(f"[yellow]on no path to the output: {', '.join(unreachable)}[/yellow]", highlight=False)
    if values["dropped_items"]:
        console.print(f"[yellow]{values['dropped_items']} items with failed runs were left out everywhere[/yellow]")
    differing = [f"{d['first']} and {d['second']}" for d in values.get("differences") or () if d["differs"]]
    if values.get("differences"):
        console.print(f"members that differ in Shapley value: {', '.join(differing) or 'none shown'}", highlight=False)


def _print_relation(relation: Mapping[str, Any], console: Console) -> None:
    pairs = relation["pairs"]
    console.print(
        f"individual against compositional strength ({relation['value'].replace('_', '-')}): "
        f"[bold]{relation['verdict']}[/bold] · pairs {pairs['concordant']} concordant, {pairs['inverted']} inverted, "
        f"{pairs['undecided']} undecided",
        highlight=False,
    )
    for name, numbers in relation["correlations"].items():
        if numbers["pearson"] is not None:
            console.print(
                f"  with {name.replace('_', '-')}: Pearson {numbers['pearson']:+.2f} "
                f"(noise-corrected {numbers['corrected']:+.2f}), Spearman {numbers['spearman']:+.2f}, "
                f"Kendall {numbers['kendall']:+.2f}",
                highlight=False,
            )


def _print_meaning(values: Mapping[str, Any], console: Console) -> None:
    definitions, cost = values["definitions"], values["cost"]
    roles = "; ".join(f"{role}: {holder}" for role, holder in definitions["roles"].items())
    console.print(
        f"[dim]intervals: {definitions['intervals']}. alone: {definitions['alone']}; absent: {definitions['absent']} "
        f"({definitions['abstaining']}){'; roles: ' + roles if roles else ''}[/dim]",
        highlight=False,
    )
    console.print(
        f"[dim]{cost['runs']:,} runs · {cost['calls']:,} calls · {cost['generated']:,} generated, "
        f"{cost['reused']:,} reused · {cost['completion_tokens']:,} tokens written · {cost['seconds']:.1f} s[/dim]",
        highlight=False,
    )
