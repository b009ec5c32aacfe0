"""Single answers in the terminal: the extracted answer of each, its score and the reason for it.

In: kept answers. Out: a rich table of the first answers. Nothing is scored here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from collabsim.coalitions.answers_kept import KeptAnswer

SHOWN = 50
"""Answers in the table; `--json` gives all."""

END = 60
"""Characters of a reply that are shown, from its end, where most answers are."""


def list_answers(answers: Sequence[KeptAnswer], console: Console) -> None:
    """Print counts by verdict, then the first answers one by one."""
    counts = Counter(answer.verdict for answer in answers)
    console.print(", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()) or "no such answer")
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0))
    for column in ("item", "who", "verdict", "score", "extracted", "reason", "end of the reply"):
        table.add_column(column, no_wrap=column in ("item", "verdict"))
    for answer in answers[:SHOWN]:
        who = f"{answer.who or 'nobody'}{' alone' if answer.kind == 'alone' else ''}"
        score = "-" if answer.score is None else f"{answer.score:.2f}"
        extracted = "-" if answer.extracted is None else repr(answer.extracted[:END])
        reply = " ".join(answer.text[-END:].split())
        cut = f" [{answer.finish}]" if answer.finish != "stop" else ""
        cells = (answer.item[:8], who, answer.verdict, score, extracted, answer.reason, reply + cut)
        table.add_row(*map(escape, cells))
    if answers:
        console.print(table)
    if len(answers) > SHOWN:
        console.print(f"[dim]... and {len(answers) - SHOWN:,} more; --json prints all[/dim]", highlight=False)
