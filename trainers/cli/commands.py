"""The commands `train`, `compare` and `finetune`: flags, files, and what is printed.

What they do is in `training`, `comparing` and `finetuning`. Nothing heavy is imported before a command runs.
"""

from __future__ import annotations

import json as json_text
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collabsim.store import GenerationStore

ToTrain = Annotated[Path, typer.Argument(metavar="CONFIG", help="YAML file with pool, protocol, task and train.")]
ToCompare = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="YAML file with pool, protocol, task, train and compare.")
]
ToFinetune = Annotated[Path, typer.Argument(metavar="CONFIG", help="YAML file with pool, protocol, task and finetune.")]
Out = Annotated[str | None, typer.Option(help="Folder that is written; default runs/<config>-<hash>.")]
Store = Annotated[str | None, typer.Option(help="File of the generation store.")]
Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="A.B=C", help="Change a key of the config; repeatable.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output instead of a table.")]


def train(
    config: ToTrain,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a training that was stopped.")] = False,
    out: Out = None,
    store: Store = None,
    set_: Set = None,
    json: Json = False,
) -> None:
    """Train one seat in place, inside the live system, and print the scores before and after."""
    from rich.console import Console

    from ..setup import prepare
    from ..training_terminal import RichTrainProgress, show_training

    prepared = prepare(config, _overrides(set_, out, store))
    console = Console(stderr=True)
    with _store(prepared.store) as opened, RichTrainProgress(console) as progress:
        try:
            result = prepared.run(opened, resume=resume, progress=progress)
        except KeyboardInterrupt:
            console.print(f"\nStopped; to go on, add --resume. Everything so far is in {prepared.out}", markup=False)
            raise
    _show(result.values, json, lambda: show_training(result.values, prepared.out, Console()))


def compare(
    config: ToCompare,
    out: Out = None,
    store: Store = None,
    set_: Set = None,
    json: Json = False,
) -> None:
    """Train every objective in every setting and print which makes the strongest collaborator. Run it again to resume."""
    from rich.console import Console

    from ..compare.comparison import compare as run
    from ..compare.matrix import read_matrix
    from ..training_terminal import RichTrainProgress, show_comparison

    matrix = read_matrix(config, _overrides(set_, out, store))
    with _store(matrix.store) as opened, RichTrainProgress(Console(stderr=True)) as progress:
        values = run(matrix, opened, progress)
    _show(values, json, lambda: show_comparison(values, Console()))


def finetune(
    config: ToFinetune,
    out: Out = None,
    store: Store = None,
    set_: Set = None,
    json: Json = False,
) -> None:
    """Let the pool debate and tune its members on what they agree on (multiagent finetuning). Run it again to resume."""
    from rich.console import Console

    from ..finetune.finetuning import multiagent_finetuning
    from ..finetune.finetuning_setup import prepare_finetuning
    from ..training_terminal import RichNotes, show_finetuning

    prepared = prepare_finetuning(config, _overrides(set_, out, store))
    with _store(prepared.config.store) as opened:
        result = multiagent_finetuning(
            prepared.pool,
            prepared.items,
            prepared.settings,
            out=prepared.out,
            dev=prepared.task.dev,
            store=opened,
            limits=prepared.limits,
            identity=prepared.identity,
            concurrency=prepared.config.concurrency,
            progress=RichNotes(Console(stderr=True)),
        )
    tuned = prepared.write_tuned(result.values["pool"])
    _show(result.values, json, lambda: show_finetuning(result.values, tuned, Console()))


def _overrides(set_: list[str] | None, out: str | None, store: str | None) -> list[str]:
    from collabsim.config.overrides import as_overrides

    return [*(set_ or []), *as_overrides({"out": out, "store": store})]


def _store(named: str | None) -> GenerationStore:
    from collabsim.config.assemble import open_store

    return open_store(named)


def _show(values: dict[str, Any], as_json: bool, show: Any) -> None:
    if as_json:
        sys.stdout.write(json_text.dumps(values, indent=1, ensure_ascii=False) + "\n")
    else:
        show()
