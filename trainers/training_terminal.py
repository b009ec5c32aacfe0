"""Trainings and comparisons on the terminal: progress, and tables of results.

In: metrics of steps, the content of `result.json` or `compare.json`. Out: lines and tables. Nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.table import Table

from collabsim.report.progress_bar import progress_bar

from .metrics import TrainProgress


class RichNotes(TrainProgress):
    """Prints sentences, and nothing else."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def note(self, line: str) -> None:
        """A sentence for the user."""
        self._console.print(f"[dim]{line}[/dim]", highlight=False)


class RichTrainProgress(RichNotes):
    """A context manager that draws one line; silent where standard error is no terminal, but for notes."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._bar = progress_bar(console, "steps · {task.fields[summary]}")
        self._task = self._bar.add_task("train", total=None, summary="")
        self._dev: float | None = None

    def __enter__(self) -> RichTrainProgress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def start(self, total: int, done: int) -> None:
        """Begin, with what earlier sessions have done."""
        self._dev = None
        self._bar.reset(self._task, total=total, completed=done, summary="")
        if done:
            self.note(f"resuming after step {done} of {total}")

    def advance(self, step: Mapping[str, Any]) -> None:
        """Draw one step."""
        self._dev = self._dev if step["dev"] is None else step["dev"]
        rewards = " ".join(f"{term} {value:.3f}" for term, value in step["reward"].items())
        dev = "" if self._dev is None else f" · dev {self._dev:.3f}"
        groups = step["groups"]
        informative = f"{groups['informative']} of {groups['all']} groups informative"
        self._bar.update(self._task, completed=step["step"], summary=f"reward {rewards or '-'}{dev} · {informative}")


def show_training(values: Mapping[str, Any], out: Path, console: Console) -> None:
    """Print the result of one training."""
    chosen, cost = values["chosen"], values["cost"]
    console.print(
        f"[bold]{values['objective']}[/bold] · seat {values['seat']} · {values['steps']} steps · "
        f"weights of step {chosen['step']} (by {chosen['by']})",
        highlight=False,
    )
    if "before" in values:
        console.print(_before_and_after(values))
    console.print(
        f"{cost['learner_tokens']:,} learner tokens, {cost['partner_tokens']:,} partner tokens, "
        f"{sum(cost['seconds'].values()):,.0f} s; {cost['without_learner']:,} runs without the learner",
        highlight=False,
    )
    console.print(f"The policy is in [bold]{out / 'policy'}[/bold]: use it as the model of any seat.", highlight=False)


def _before_and_after(values: Mapping[str, Any]) -> Table:
    table = Table(header_style="bold", box=None, padding=(0, 2, 0, 0))
    for name in ("", "before", "after", "gain"):
        table.add_column(name, justify="left" if not name else "right", no_wrap=True)
    for name in ("system", "individual"):
        if values["before"][name] is not None:
            parts = (values["before"][name], values["after"][name], values["gain"][name])
            table.add_row(name, *map(_estimate, parts))
    early, late = values["before"]["compositional"] or {}, values["after"]["compositional"] or {}
    for player in early:
        table.add_row(f"worth of {player}", _estimate(early[player]), _estimate(late[player]), "")
    return table


def _estimate(estimate: Mapping[str, Any]) -> str:
    low, high = estimate["ci95"]
    return f"{estimate['value']:.3f} [dim]\\[{low:.3f}, {high:.3f}][/dim]"


def show_finetuning(values: Mapping[str, Any], tuned: Path, console: Console) -> None:
    """Print the result of a fine-tuning: agreement, replies that each member learnt from, and dev where it was evaluated."""
    members = values["members"]
    table = Table(header_style="bold", box=None, padding=(0, 2, 0, 0))
    for column in ("iteration", "debates", "consensus", "right (by gold)", *members, "dev"):
        table.add_column(column, justify="right")
    for iteration in values["iterations"]:
        right = "-" if iteration["consensus_right"] is None else f"{iteration['consensus_right']:.3f}"
        learnt = (f"{sum(iteration['members'][name]['replies'].values()):,} replies" for name in members)
        dev = "-" if iteration["dev"] is None else f"{iteration['dev']:.3f}"
        table.add_row(
            str(iteration["iteration"]), str(iteration["debates"]), str(iteration["consensus"]), right, *learnt, dev
        )
    console.print(table)
    if values["dev"] is not None:
        console.print(f"dev before fine-tuning: {values['dev'][0]:.3f}", highlight=False)
    if values["unchanged"]:
        console.print(f"not tuned, since they have no local weights: {', '.join(values['unchanged'])}", highlight=False)
    console.print(f"[dim]{values['definition']}[/dim]", highlight=False)
    console.print(f"The new pool: [bold]collabsim sweep {tuned}[/bold]", highlight=False, soft_wrap=True)


def show_comparison(values: Mapping[str, Any], console: Console) -> None:
    """Print the table of a comparison: gains by setting and objective, who won, and the sums over settings."""
    objectives = values["objectives"]
    table = Table(header_style="bold", box=None, padding=(0, 2, 0, 0))
    table.add_column("setting", no_wrap=True)
    for objective in objectives:
        table.add_column(objective, justify="right")
    table.add_column("highest")
    table.add_column("wins by interval")
    for setting in values["settings"]:
        gains = [_estimate(setting["gain"][objective]) for objective in objectives]
        table.add_row(setting["name"], *gains, ", ".join(setting["highest"]), setting["winner"] or "-")
    means = [_estimate(values["mean_gain"][objective]) for objective in objectives]
    table.add_row("[bold]mean gain[/bold]", *means, "", "")
    console.print(table)
    for objective in objectives:
        wins = values["wins"][objective]
        console.print(
            f"{objective}: highest in {wins['point']} of {len(values['settings'])} settings, "
            f"by interval in {wins['interval']}",
            highlight=False,
        )
    for name, ratio in values["ratio"].items():
        low, high = ratio["ci95"] if ratio["ci95"] else (None, None)
        none = "[dim](no interval: the second gain may be 0)[/dim]"
        interval = none if low is None else f"[dim]\\[{low:.2f}, {high:.2f}][/dim]"
        value = "-" if ratio["value"] is None else f"{ratio['value']:.2f}"
        console.print(f"ratio of mean gains {name}: {value} {interval}", highlight=False)
    for protocol, rates in values.get("rates", {}).items():
        chosen_rates = ", ".join(f"{objective} {rate:g}" for objective, rate in rates.items())
        console.print(f"learning rates chosen on dev, {protocol}: {chosen_rates}", highlight=False)
    console.print(f"[dim]{values['definition']}[/dim]", highlight=False)
