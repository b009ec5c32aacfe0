"""Metrics of a training: one line of JSON a step, TensorBoard where it is installed, a line on the terminal.

In: the numbers of a step, as nested plain data. Out: `metrics.jsonl`, event files, progress. A resumed training goes on
behind its checkpoint: later lines of a killed session, and half a line at the end, are dropped first.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from collabsim.errors import StoreError

METRICS_FILE = "metrics.jsonl"


class TrainProgress:
    """Receives the progress of a training while it runs; the base class ignores it."""

    def start(self, total: int, done: int) -> None:
        """Called once, with the number of steps and of those that are done already."""

    def advance(self, step: Mapping[str, Any]) -> None:
        """Called after every step with its metrics."""

    def note(self, line: str) -> None:
        """Called with a sentence for the user."""


class Metrics:
    """Writes the metrics of one training; a context manager. `folder` None keeps nothing."""

    def __init__(self, folder: Path | None, done: int) -> None:
        """`done`: steps of the checkpoint that is resumed. Raises `StoreError` when the folder cannot be written."""
        self._path = None if folder is None else folder / METRICS_FILE
        if self._path is not None:
            _keep_until(self._path, done)
        self._board = None if folder is None else _tensorboard(folder / "tensorboard", done)

    def write(self, step: Mapping[str, Any]) -> None:
        """Append the metrics of a step, under the key `step`."""
        if self._path is not None:
            try:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(step, ensure_ascii=False) + "\n")
            except OSError as error:
                raise StoreError(f"cannot write {self._path}: {error.strerror}; make room, then resume") from None
        if self._board is not None:
            for name, value in flat(step):
                self._board.add_scalar(name, value, step["step"])
            self._board.flush()

    def __enter__(self) -> Metrics:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._board is not None:
            self._board.close()


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """The numbers in nested data, named by their path: `seconds/rollout`."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}/")
        elif isinstance(value, int | float) and name != "step":
            yield f"{prefix}{name}", float(value)


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The metrics of every step in a training's folder; a half-written last line is left out."""
    try:
        lines = (folder / METRICS_FILE).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    steps = []
    for line in lines:
        try:
            steps.append(json.loads(line))
        except ValueError:
            break
    return steps


def _keep_until(path: Path, done: int) -> None:
    steps = [line for line in read_metrics(path.parent) if line["step"] <= done]
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        draft.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in steps), encoding="utf-8")
        os.replace(draft, path)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}; make room or name another folder") from None


def _tensorboard(folder: Path, done: int) -> Any:
    """A writer that forgets events after `done`; None without the package tensorboard."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder), purge_step=done + 1 if done else None)
