"""The comparison of objectives: runs every cell of a matrix, and finds the objective with the strongest collaborators.

In: a matrix and a generation store. Out: the content of `compare.json`, beside a picture of the table. Within a setting all
objectives start from one model, with the same partners and the same test items, so the system without the learner is the
same for all: a difference of outcomes is a difference of contributions. Finished cells are read, unfinished ones resumed.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from collabsim.cli.report_command import PICTURE_COLUMNS
from collabsim.run_folder import RunFolder, read_json, write_json
from collabsim.seeds import derive_seed

from ..metrics import TrainProgress
from ..setup import prepare_config
from ..training import RESULT_FILE
from .matrix import Cell, Matrix

if TYPE_CHECKING:
    from collabsim.config.schema import Config
    from collabsim.store import GenerationStore

Floats = NDArray[np.float64]
RESAMPLES = 2000
COMPARE_FILE, PICTURE_FILE = "compare.json", "compare.svg"
DEFINITION = (
    "gain: outcome of the system on held-out items after training minus before; intervals are 95% percentiles over seeds and "
    "items resampled together (pigeonhole bootstrap). 'highest' goes by the means alone; 'wins by interval' needs the paired "
    "difference from every other objective to exclude 0. Counts are over what was run."
)


def compare(matrix: Matrix, store: GenerationStore, progress: TrainProgress | None = None) -> dict[str, Any]:
    """Run the cells that are not finished and sum up. Raises what `train` raises; the next call goes on from there."""
    progress = progress or TrainProgress()
    folder = RunFolder(matrix.out, matrix.identity)
    folder.open()
    run = _Runner(matrix, store, folder, progress)
    rates = run.choose_rates()
    results: dict[Cell, dict[str, Any]] = {}
    for number, cell in enumerate(matrix.cells, start=1):
        title = f"{number} of {len(matrix.cells)}: {cell.setting}, {cell.objective}, seed {cell.seed}"
        lr = {"lr": rates[cell.protocol][cell.objective]} if rates else {}
        results[cell] = run.training(matrix.with_train(cell, **lr), folder.file(cell.folder), title)
    values = sum_up(matrix, results) | ({"rates": rates} if rates else {})
    write_json(folder.file(COMPARE_FILE), values)
    folder.file(PICTURE_FILE).write_text(picture(values), encoding="utf-8")
    return values


@dataclass(frozen=True)
class _Runner:
    """Trainings of a comparison, each in its own folder."""

    matrix: Matrix
    store: GenerationStore
    folder: RunFolder
    progress: TrainProgress

    def training(self, config: Config, out: Path, title: str) -> dict[str, Any]:
        """The result of one training: read where it is finished, resumed or begun where it is not."""
        finished: dict[str, Any] | None = read_json(out / RESULT_FILE) if out.is_dir() else None
        if finished is not None:
            return finished
        self.progress.note(title)
        prepared = prepare_config(config, self.matrix.base, out)
        values = prepared.run(self.store, resume=True, progress=self.progress).values
        # Policy and model refer to each other: few objects, so Python is in no hurry, but gigabytes of weights and moments.
        gc.collect()
        return values

    def choose_rates(self) -> dict[str, dict[str, float]]:
        """Protocol and objective to the learning rate that is best on dev, the lower one of equals; test is not read."""
        chosen: dict[str, dict[str, float]] = {}
        first = self.matrix.cells[0]
        for cell in self.matrix.cells if self.matrix.rates else ():
            if (cell.task, cell.seed) != (first.task, first.seed):
                continue
            scores = {}
            for rate in sorted(self.matrix.rates):
                config = self.matrix.with_train(cell, lr=rate, eval={"test": False})
                title = f"learning rate {rate:g}: {cell.setting}, {cell.objective}"
                out = self.folder.file("rates") / f"{cell.folder}-{rate:g}"
                scores[rate] = self.training(config, out, title)["chosen"]["dev"]
            chosen.setdefault(cell.protocol, {})[cell.objective] = max(scores, key=lambda rate: (scores[rate], -rate))
        return chosen


def sum_up(matrix: Matrix, results: dict[Cell, dict[str, Any]]) -> dict[str, Any]:
    """The content of `compare.json` from the results of all cells."""
    gains = {setting: _gains(matrix, results, setting) for setting in matrix.settings}
    settings = [_setting(name, gains[name], matrix.objectives) for name in matrix.settings]
    means = {arm: _mean_over_settings(gains, arm) for arm in matrix.objectives}
    first = matrix.objectives[0]
    return {
        "objectives": list(matrix.objectives),
        "seeds": list(matrix.seeds),
        "settings": settings,
        "mean_gain": {arm: _summary(*means[arm]) for arm in matrix.objectives},
        "ratio": {f"{first} / {arm}": _ratio(means[first], means[arm]) for arm in matrix.objectives[1:]},
        "wins": {
            arm: {
                "point": sum(arm in setting["highest"] for setting in settings),
                "interval": sum(setting["winner"] == arm for setting in settings),
            }
            for arm in matrix.objectives
        },
        "tokens": {arm: _tokens(results, arm) for arm in matrix.objectives},
        "definition": DEFINITION,
    }


def _gains(matrix: Matrix, results: dict[Cell, dict[str, Any]], setting: str) -> dict[str, tuple[float, Floats]]:
    """Gain of each objective in a setting: the mean and its resamples. All objectives share the resampled seeds and items."""
    tables = {}
    for arm in matrix.objectives:
        cells = [cell for cell in matrix.cells if (cell.setting, cell.objective) == (setting, arm)]
        rows = [results[cell]["per_item"] for cell in cells]
        tables[arm] = np.array([np.subtract(row["after"], row["before"]) for row in rows], dtype=np.float64)
    draws = resamples(next(iter(tables.values())).shape, setting)
    return {arm: (float(table.mean()), _resampled(table, draws)) for arm, table in tables.items()}


def resamples(shape: tuple[int, int], name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Counts by which each seed and each item is drawn, [RESAMPLES, seeds] and [RESAMPLES, items] (Owen 2007)."""
    rng = np.random.default_rng(derive_seed("compare", name))
    counts = [rng.multinomial(size, [1 / size] * size, RESAMPLES).astype(np.float64) for size in shape]
    return counts[0], counts[1]


def _resampled(table: Floats, draws: tuple[Floats, Floats]) -> Floats:
    seeds, items = draws
    means: Floats = ((seeds @ table) * items).sum(axis=1) / table.size
    return means


def _setting(name: str, gains: dict[str, tuple[float, Floats]], arms: tuple[str, ...]) -> dict[str, Any]:
    best = max(gains[arm][0] for arm in arms)
    highest = [arm for arm in arms if best - gains[arm][0] < 1e-12]
    differences = {
        f"{one} - {other}": _summary(gains[one][0] - gains[other][0], gains[one][1] - gains[other][1])
        for one in arms
        for other in arms
        if one != other
    }
    winners = [
        arm for arm in arms if all(differences[f"{arm} - {other}"]["ci95"][0] > 0 for other in arms if other != arm)
    ]
    return {
        "name": name,
        "gain": {arm: _summary(*gains[arm]) for arm in arms},
        "difference": differences,
        "highest": highest,
        "winner": winners[0] if winners and len(arms) > 1 else None,
    }


def _mean_over_settings(gains: dict[str, dict[str, tuple[float, Floats]]], arm: str) -> tuple[float, Floats]:
    each = [gains[setting][arm] for setting in gains]
    return float(np.mean([value for value, _ in each])), np.mean([resampled for _, resampled in each], axis=0)


def _summary(value: float, resampled: Floats) -> dict[str, Any]:
    low, high = np.quantile(resampled, [0.025, 0.975])
    return {"value": value, "ci95": [float(low), float(high)]}


def _ratio(over: tuple[float, Floats], under: tuple[float, Floats]) -> dict[str, Any]:
    """Ratio of mean gains; without an interval where the lower one may be 0, since the ratio then has none."""
    low, high = np.quantile(under[1], [0.025, 0.975])
    if low <= 0 <= high:
        return {"value": over[0] / under[0] if abs(under[0]) > 1e-12 else None, "ci95": None}
    return _summary(over[0] / under[0], over[1] / under[1])


def _tokens(results: dict[Cell, dict[str, Any]], arm: str) -> dict[str, int]:
    costs = [result["cost"] for cell, result in results.items() if cell.objective == arm]
    return {name: sum(cost[f"{name}_tokens"] for cost in costs) for name in ("learner", "partner")}


def picture(values: dict[str, Any]) -> str:
    """The terminal's table as SVG text: a function of the values alone."""
    from rich.console import Console

    from ..training_terminal import show_comparison

    console = Console(record=True, file=StringIO(), width=PICTURE_COLUMNS, force_terminal=True, _environ={})
    show_comparison(values, console)
    return console.export_svg(title="collabsim · compare")
