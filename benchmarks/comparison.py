"""A finished `collabsim compare` as a page of `benchmarks/results`: the table, the picture, the config and the curves on dev.

    python benchmarks/comparison.py runs/compare --name compare --config examples/compare.yaml

In: the run folder of a comparison. Out: `NAME.md`, `NAME.svg` (the table) and `NAME_curves.svg`. Nothing is
computed but means of curves over seeds.
"""

from __future__ import annotations

import argparse
import shutil
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from collabsim.trainers.compare.comparison import COMPARE_FILE, PICTURE_FILE
from collabsim.trainers.compare.matrix import Cell
from collabsim.trainers.metrics import read_metrics
from collabsim.trainers.training import BEFORE_FILE
from recording import RESULTS, record

from collabsim.run_folder import read_json

Curves = dict[str, dict[str, list[dict[int, float]]]]
"""Setting, objective: for each seed, the mean outcome on dev by step."""


def curves_of(folder: Path, values: Mapping[str, Any]) -> Curves:
    """What each training saw on dev, from its metrics."""
    found: Curves = defaultdict(lambda: defaultdict(list))
    for setting in values["settings"]:
        protocol, task = setting["name"].split(" · ")
        for objective in values["objectives"]:
            for seed in values["seeds"]:
                lines = read_metrics(folder / Cell(protocol, task, objective, seed).folder)
                found[setting["name"]][objective].append(
                    {line["step"]: line["dev"] for line in lines if line["dev"] is not None}
                )
    return found


def draw(curves: Curves, path: Path) -> None:
    """One panel a setting, one line an objective: the mean over seeds."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    columns = min(4, len(curves))
    rows = -(-len(curves) // columns)
    figure, panels = plt.subplots(rows, columns, figsize=(3 * columns, 2.2 * rows), squeeze=False, sharey=True)
    for panel, (setting, objectives) in zip(panels.flat, curves.items(), strict=False):
        for objective, seeds in objectives.items():
            steps = sorted(set.intersection(*(set(one) for one in seeds)))
            panel.plot(steps, [np.mean([one[step] for one in seeds]) for step in steps], marker=".", label=objective)
        panel.set_title(setting, fontsize=8)
    panels[0][0].legend(fontsize=7)
    panels[-1][0].set_xlabel("step", fontsize=8)
    panels[0][0].set_ylabel("outcome on dev", fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def estimate(value: Mapping[str, Any], digits: int = 3) -> str:
    """`value [low, high]`."""
    if value["value"] is None:
        return "-"
    low, high = value["ci95"] or (None, None)
    return f"{value['value']:.{digits}f}" + (f" [{low:.{digits}f}, {high:.{digits}f}]" if low is not None else "")


def table(folder: Path, values: Mapping[str, Any]) -> list[list[str]]:
    """A row for each setting, and one of the means."""
    arms, rows = values["objectives"], []
    for setting in values["settings"]:
        before = read_json(
            folder / f"{setting['name'].replace(' · ', '-')}-{arms[0]}-{values['seeds'][0]}" / BEFORE_FILE
        )
        start = f"{np.mean(before['system']):.3f}" if before else "-"
        gains = [estimate(setting["gain"][arm]) for arm in arms]
        rows.append([setting["name"], start, *gains, ", ".join(setting["highest"]), setting["winner"] or "-"])
    return [*rows, ["mean gain", "", *(estimate(values["mean_gain"][arm]) for arm in arms), "", ""]]


def notes(values: Mapping[str, Any], config: str) -> list[str]:
    """What the numbers are, and the counts."""
    arms, settings = values["objectives"], len(values["settings"])
    wins = "; ".join(
        f"{arm}: highest in {values['wins'][arm]['point']} of {settings}, by interval in {values['wins'][arm]['interval']}"
        for arm in arms
    )
    ratios = ", ".join(f"{name} {estimate(ratio, 2)}" for name, ratio in values["ratio"].items())
    tokens = "; ".join(f"{arm} {one['learner']:,} + {one['partner']:,}" for arm, one in values["tokens"].items())
    rates = "; ".join(
        f"{protocol}: " + ", ".join(f"{arm} {rate:g}" for arm, rate in chosen.items())
        for protocol, chosen in values.get("rates", {}).items()
    )
    return [
        f"Seeds {', '.join(map(str, values['seeds']))}; config [{config}](../../{config}). {values['definition']}",
        f"Winners. {wins}.",
        f"Ratios of mean gains: {ratios}." if ratios else "",
        f"Tokens of learner + partners in training: {tokens}.",
        f"Learning rates chosen on dev. {rates}." if rates else "",
    ]


def main() -> None:
    """Read the folder, write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--name", required=True)
    parser.add_argument("--config", required=True)
    parser.add_argument("--title", default="Who makes the strongest collaborator")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the page goes")
    given = parser.parse_args()
    values = read_json(given.folder / COMPARE_FILE)
    header = ["setting", "before", *values["objectives"], "highest", "wins by interval"]
    draw(curves_of(given.folder, values), given.results / f"{given.name}_curves.svg")
    shutil.copyfile(given.folder / PICTURE_FILE, given.results / f"{given.name}.svg")
    said = [line for line in notes(values, given.config) if line]
    pictures = f"![table]({given.name}.svg)\n\n![curves on dev]({given.name}_curves.svg)"
    command = f"collabsim compare {given.config}"
    rows = table(given.folder, values)
    record(given.name, given.title, header, rows, *said, pictures, command=command, folder=given.results)


if __name__ == "__main__":
    main()
