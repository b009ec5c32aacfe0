"""Every collaboration method on one pool of small real models: a sweep each, and one table of all.

    python benchmarks/methods.py --out runs/methods                        # everything; the same command resumes
    python benchmarks/methods.py --out runs/methods --methods debate,soup  # these; the table has all that are finished

In: a config with pool, helpers and task (by default that of examples/train_specialists.py, which is run first if need be).
Out: a run folder for each method and one generation store in `--out`; `methods.md` and `methods.json` in
benchmarks/results. All coalitions are evaluated (`exact`). Members answer greedily, but for a method that needs samples.
"""

from __future__ import annotations

import argparse
import copy
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from method_rows import TEMPERATURE, BestMember, row_of, write_table
from recording import RESULTS
from rich.console import Console

from collabsim import sweep
from collabsim.config.assemble import make_pool, make_system, make_task
from collabsim.config.read import identity_fields, parse_config
from collabsim.config.schema import Config
from collabsim.errors import CollabsimError
from collabsim.report.progress_bar import RichProgress
from collabsim.run_folder import read_json, write_json
from collabsim.store import GenerationStore

EXAMPLE = Path(__file__).parents[1] / "examples" / "train_specialists.py"
STORE_FILE = "generations.sqlite"


@dataclass(frozen=True)
class Method:
    """A protocol with options, and what it needs changed in the pool."""

    options: Mapping[str, Any] = field(default_factory=dict)
    temperature: float | None = None
    """None: as the pool says."""
    seats: int | None = None
    """The first so many seats of the pool; None: all."""

    @property
    def shown(self) -> str:
        """What is not as the protocol or the pool has it by default."""
        said = [f"{name}: {value}" for name, value in self.options.items()]
        said += [f"temperature: {self.temperature}"] if self.temperature is not None else []
        return ", ".join([*said, f"first {self.seats} members"] if self.seats else said) or "-"


# In the order in which they are run: what is cheap first, every family early.
METHODS = {
    "majority_vote": Method(),
    "trained_router": Method(),
    "graph_router": Method(),
    "cascade": Method({"confidence": "probability"}),
    "trained_aggregator": Method(),
    "soup": Method(),
    "prompt_router": Method(),
    "nudging": Method(seats=2),
    "mixture_of_agents": Method(),
    "structured": Method({"structure": "chain"}),
    "debate": Method(),
    "ties": Method(),
    "logit_fusion": Method(),
    "knowledge_cards": Method(),
    "task_arithmetic": Method(),
    "self_consistent_mux": Method({"samples": 3}, temperature=TEMPERATURE),
    "contrastive": Method(),
    "greedy_soup": Method(),
    "dare_ties": Method(),
    "switch_generation": Method({"segment": 3}),
    "rank_and_fuse": Method(),
    "blackboard": Method({"rounds": 2}),
    "feedback": Method({"critics": 1}),
}


def config_of(base: Mapping[str, Any], name: str) -> Config:
    """The config of a method's sweep: `base` with its protocol and what it needs changed in the pool."""
    method, data = METHODS[name], copy.deepcopy(dict(base))
    pool = dict(list(data["pool"].items())[: method.seats])
    if method.temperature is not None:
        pool = {
            seat: {**given, "sampling": {**given.get("sampling", {}), "temperature": method.temperature}}
            for seat, given in pool.items()
        }
    return parse_config(
        {**data, "pool": pool, "protocol": {"name": name, **method.options}, "sweep": {"method": "exact"}}, name
    )


def measure(name: str, base: Mapping[str, Any], folder: Path, out: Path, best: BestMember) -> dict[str, Any]:
    """Sweep one method into `out/NAME` and return its row; nothing is generated that is there already."""
    config = config_of(base, name)
    system, task = make_system(config, best.store, folder), make_task(config, folder)
    with RichProgress(Console(stderr=True)) as progress:
        result = sweep(
            system, task, method="exact", out=out / name, identity=identity_fields(config), progress=progress
        )
    return row_of(system, result, best)


def measure_all(names: Sequence[str], path: Path, out: Path, store: GenerationStore) -> dict[str, str]:
    """Measure these methods on the pool of the config at `path`; rows go to `out/rows`. Returns what failed, and why."""
    base = yaml.safe_load(path.read_text(encoding="utf-8"))
    plain = config_of(base, "majority_vote")
    best = BestMember.of(make_pool(plain.pool), make_task(plain, path.parent), store)
    (out / "rows").mkdir(parents=True, exist_ok=True)
    failed = {}
    for name in names:
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            row = measure(name, base, path.parent, out, best)
        except CollabsimError as error:
            failed[name] = str(error)
            print(f"{name}: {error}", file=sys.stderr, flush=True)
        else:
            write_json(out / "rows" / f"{name}.json", row)
    return failed


def finished_rows(out: Path) -> list[dict[str, Any]]:
    """The rows of all methods that are finished in `out`."""
    found = (read_json(out / "rows" / f"{name}.json") for name in METHODS)
    return [row for row in found if row is not None]


def notes(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What stands below the table."""
    best, items = rows[0]["best"], rows[0]["items"]
    return [
        f"{items} test items, all coalitions; routers, thresholds, soups and orders of preference were fitted on dev items "
        f"that are none of these. Intervals: 95% for the population of items. Best member: `{best}`, by dev score. Its "
        "self-consistency is a vote among as many of its own samples as cost the tokens of one run of the method (read and "
        f"written, each sample read anew; temperature {TEMPERATURE}; of 1: its own answer). Roles go to the best present "
        "member by dev score. Calls are those of a run with everybody present, `=` where all runs of all coalitions make as "
        "many as documented.",
        "v(empty) is 0, but for merges, where it is what the base gets right by itself. Methods share in one store what they "
        "ask alike.",
    ]


def arguments() -> argparse.Namespace:
    """What was said on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/methods"))
    parser.add_argument("--methods", default=",".join(METHODS), help="names, separated by commas")
    parser.add_argument("--config", type=Path, help="pool, helpers and task; by default specialists are trained")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the table goes")
    given = parser.parse_args()
    given.methods = given.methods.split(",")
    if unknown := sorted(set(given.methods) - METHODS.keys()):
        parser.error(f"--methods: unknown {', '.join(unknown)}; known are {', '.join(METHODS)}")
    return given


def main() -> int:
    """Train what is missing, measure, write the table. Returns the exit code: 1 when a method failed."""
    given = arguments()
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.config or given.out / "specialists" / "sweep.yaml"
    if not path.exists() and given.config is None:
        subprocess.run([sys.executable, str(EXAMPLE), "--out", str(path.parent)], check=True)
    with GenerationStore(given.out / STORE_FILE) as store:
        failed = measure_all(given.methods, path, given.out, store)
    if rows := finished_rows(given.out):
        shown = {name: method.shown for name, method in METHODS.items()}
        command = f"python benchmarks/methods.py --out {given.out}"
        write_table(rows, shown, command, *notes(rows), folder=given.results)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
