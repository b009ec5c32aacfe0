"""Progress of a sweep on the terminal: runs, rate, calls, reuse, tokens per second, time left."""

from __future__ import annotations

from time import perf_counter
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from collabsim.coalitions.progress import Progress as SweepProgress
from collabsim.episode import Episode

REFRESH_SECONDS = 0.1


def progress_bar(console: Console, text: str) -> Progress:
    """A bar of one line with `text` (a rich template over a task's fields); nothing where `console` is no terminal."""
    return Progress(
        SpinnerColumn(),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn(text),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


class RichProgress(SweepProgress):
    """A context manager that draws one line; silent where standard error is no terminal, except for a last line."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = progress_bar(console, "runs · {task.fields[rate]:.0f}/s · {task.fields[calls]}")
        self._task = self._bar.add_task("sweep", total=None, rate=0.0, calls="")
        self._before = self._runs = self._calls = self._failed = self._tokens = self._generated = 0
        self._started = self._refreshed = perf_counter()

    def __enter__(self) -> RichProgress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
        if self._failed:
            self._console.print(f"[yellow]{self._failed} runs failed; the same command tries them again[/yellow]")

    def start(self, total: int, done: int) -> None:
        """Begin, with what earlier sessions have done."""
        self._started, self._before = perf_counter(), done
        self._bar.update(self._task, total=total, completed=done)
        if done:
            self._console.print(f"[dim]resuming: {done:,} of {total:,} runs are there already[/dim]", highlight=False)

    def advance(self, episode: Episode) -> None:
        """Count one run; draw at most ten times a second."""
        self._runs += 1
        self._calls += len(episode.calls)
        self._failed += episode.failed
        for call in episode.calls:
            if not call.reused:
                self._generated += 1
                self._tokens += call.usage.completion_tokens
        now = perf_counter()
        if now - self._refreshed > REFRESH_SECONDS:
            self._refreshed = now
            seconds = max(now - self._started, 1e-9)
            reuse = 1 - self._generated / self._calls if self._calls else 0.0
            calls = f"{self._calls:,} calls, {reuse:.0%} reused · {self._tokens / seconds:,.0f} tokens/s"
            self._bar.update(self._task, completed=self._before + self._runs, rate=self._runs / seconds, calls=calls)
