"""`collabsim sweep`: run, `--dry-run`, `--show-prompts`."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from collabsim.coalitions.forecast import forecast
from collabsim.coalitions.sweep import Sweep, plan_sweep
from collabsim.config.assemble import make_system, make_task, open_store
from collabsim.config.read import config_identity, identity_fields, read_config, run_place
from collabsim.config.schema import Config
from collabsim.context import Recorder
from collabsim.episode import Call, Reply
from collabsim.loop import run_sync
from collabsim.paths import user_path
from collabsim.report.progress_bar import RichProgress
from collabsim.report.terminal import show_values
from collabsim.request import Request
from collabsim.store import GenerationStore
from collabsim.system.fitting import afit
from collabsim.system.system import System
from collabsim.tasks import Task


@dataclass(frozen=True)
class PreparedSweep:
    """A config turned into live objects."""

    config: Config
    system: System
    task: Task
    out: Path


def prepare(path: Path, overrides: Sequence[str]) -> PreparedSweep:
    """Read a config and build what it describes, with a store in memory; nothing is generated or written."""
    path = user_path(path, "CONFIG")
    config = read_config(path, overrides)
    task = make_task(config, path.parent)
    out = run_place(path, config.out, config_identity(config))
    return PreparedSweep(config, make_system(config, GenerationStore(None), path.parent), task, out)


def _planned(prepared: PreparedSweep, *, keep: bool, progress: RichProgress | None = None) -> Sweep:
    settings = prepared.config.sweep
    return plan_sweep(
        prepared.system,
        prepared.task,
        method=settings.method,
        seed=settings.seed,
        players=settings.players,
        budget=settings.budget,
        out=prepared.out if keep else None,
        identity=identity_fields(prepared.config),
        concurrency=prepared.config.concurrency,
        on_missing=settings.on_missing,
        progress=progress,
    )


def run(path: Path, overrides: Sequence[str], *, as_json: bool) -> None:
    """Sweep, with progress on standard error and the result on standard output."""
    console = Console(stderr=True)
    prepared = prepare(path, overrides)
    progress = RichProgress(console)
    sweep = _planned(prepared, keep=True, progress=progress)
    # The store's file is made when nothing of the config can be wrong any more.
    with open_store(prepared.config.store) as store:
        try:
            with progress:
                result = run_sync(replace(sweep, system=replace(sweep.system, store=store)).arun())
        except KeyboardInterrupt:
            console.print(
                f"\nStopped; everything so far is in {prepared.out}. To go on: {_same_command()}",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )
            raise
    if as_json:
        sys.stdout.write(json.dumps(result.values, indent=1, ensure_ascii=False) + "\n")
        return
    show_values(result.values, Console())
    Console().print(f"Saved in [bold]{prepared.out}[/bold]; the same command again generates nothing.", highlight=False)


def _same_command() -> str:
    return shlex.join(["collabsim", *sys.argv[1:]])


def dry_run(path: Path, overrides: Sequence[str], *, as_json: bool) -> None:
    """Print the exact number of evaluations and bounds of calls, generations and tokens."""
    prepared = prepare(path, overrides)
    counts = forecast(_planned(prepared, keep=False))
    if as_json:
        sys.stdout.write(json.dumps(counts) + "\n")
        return
    for name, value in counts.items():
        Console().print(f"{name.replace('_', ' '):<28}{'unknown' if value is None else format(value, ','):>14}")


class _PromptRecorder(Recorder):
    """Prints what each node sends to the models of `system`, which are not called."""

    def __init__(self, system: System) -> None:
        super().__init__()
        self._seats = {**system.pool, **system.helpers}

    def record(self, call: Call, request: Request, reply: Reply) -> None:
        """Print one call's messages."""
        super().record(call, request, reply)
        console = Console()
        prompter = getattr(self._seats[call.seat].model, "prompter", None)
        if prompter is None:
            length = f"about {sum(len(message.content.split()) for message in request.messages)} words"
        else:
            length = f"{prompter.count(request.messages, request.sampling.template)} tokens"
        console.rule(f"node {call.node} · seat {call.seat} · draw {call.draw} · {length}", align="left")
        if prompter is not None:  # what the model reads, special tokens included
            console.print(prompter.text(request.messages, request.sampling.template), markup=False, highlight=False)
            return
        for message in request.messages:
            console.print(f"[bold]{message.role}[/bold]", highlight=False)
            console.print(message.content, markup=False, highlight=False)


def show_prompts(path: Path, overrides: Sequence[str]) -> None:
    """Run one item with simulated models in every seat, and print what each node would send to the real ones."""
    from collabsim.models.simulation.simulated import SimulatedModel

    prepared = prepare(path, overrides)
    system, item = prepared.system, prepared.task.items[0]
    for seat in system.pool:
        system = system.replace(seat, SimulatedModel(name=seat))
    helpers = system.helpers
    for name in helpers:
        helpers = helpers.replace(name, SimulatedModel(name=name))
    system = replace(system, helpers=helpers)
    system.study([item, *prepared.task.dev])
    if system.protocol.fit is not None:
        system = replace(system, fitted=run_sync(afit(system, prepared.task.dev, seed=prepared.config.sweep.seed)))
    Console().print("Replies shown inside prompts are simulated; no model of the pool was called.", highlight=False)
    system.run(item, run_seed=prepared.config.sweep.seed, recorder=_PromptRecorder(prepared.system))
