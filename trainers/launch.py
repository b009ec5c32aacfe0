"""`train`: from a system, a task and settings to a trained policy.

In: what a user has. Out: a `TrainResult`, and the folder of the training. Everything that can be wrong with the settings is
found here, before a model is loaded. Left out on purpose: the loop itself; see `training.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Unpack

from collabsim.arguments import Count, checked, same_arguments
from collabsim.errors import ConfigError
from collabsim.item import Item
from collabsim.models import LocalModel
from collabsim.models.weights import computes_natively, likely_device
from collabsim.paths import user_path
from collabsim.pool import Pool
from collabsim.run_folder import RunFolder, read_json
from collabsim.store import GenerationStore
from collabsim.system.system import System
from collabsim.tasks import Task

from .keywords import TrainSettings
from .metrics import TrainProgress
from .rollouts import check_plan, plan_of
from .settings import TrainConfig, one_of, parse_train
from .train_result import TrainResult
from .training import CHECKPOINTS_FOLDER, RESULT_FILE, Training
from .training_items import check_disjoint

if TYPE_CHECKING:
    from .policy.policy import Policy


@checked(
    system='System("debate", {"a": model, "b": model}) makes one of a name and a pool',
    task='load_task("reasoning_gym:chain_sum", limit=30) makes one of a name',
    items="give the items to train on, such as load_task(..., seed=1).items",
    config="give TrainConfig(seat=...), or the same settings as keywords",
    out="name the folder of the training",
    prompt="give the task's template",
)
def train(
    system: System,
    task: Task,
    items: Sequence[Item],
    config: TrainConfig | None = None,
    *,
    policy: Policy | None = None,
    out: Path | str | None = None,
    identity: Mapping[str, Any] | None = None,
    prompt: str | None = None,
    resume: bool = False,
    concurrency: Count = 100,
    progress: TrainProgress | None = None,
    **settings: Unpack[TrainSettings],
) -> TrainResult:
    """Train the model in one seat of `system` on `items`; the task's dev items choose, its items measure.

    `config`, or the same settings as keywords (`seat="a", steps=60, ...`). `policy`: an open one; None opens the seat's
    local model. `out`: the folder of the training; None keeps nothing. `prompt`: the task's own template, for golds.
    `resume`: go on where a killed training with the same settings stopped. Works in scripts and notebooks.

    Raises `ConfigError` for settings that cannot be meant, `DataError` when items overlap, `TrainingError` when training
    cannot go on (the last checkpoint stays), `MissingOutcomesError` when an evaluation failed (resume retries it).
    """
    config = one_of(config, settings) or parse_train(settings)
    if out is None and resume:
        raise ConfigError("resume: expected the folder of a training in `out`, got none")
    check_disjoint(tuple(items), task)
    check_paired(system, items)
    check_plan(plan_of(config, system), system)
    if policy is None:
        _check_autocast(config)
    system.study([*items, *task.items, *task.dev])
    fields = {"train": config.model_dump(mode="json"), "system": system.identity, "items": task.identity}
    fields |= {"dev": task.dev_identity, "train_items": sorted(item.id for item in items)}
    with TemporaryDirectory() as scratch:
        folder = RunFolder(scratch if out is None else out, {**(identity or {}), **fields})
        if (finished := _finished(folder, resume)) is not None:
            return TrainResult(finished, Path(folder.path))
        folder.open()
        opened = policy or _open_policy(system, config)
        try:
            training = Training(system, task, items, config, opened, folder, concurrency, progress or TrainProgress())
            values = training.run(prompt)
        finally:
            if policy is None:
                opened.close()
    return TrainResult(values, None if out is None else user_path(out, "out"))


@same_arguments(train)
async def atrain(*given: Any, **settings: Any) -> TrainResult:
    """`train` for async code; the same arguments."""
    return await asyncio.to_thread(train, *given, **settings)


def check_paired(system: System, items: Sequence[Item]) -> None:
    """Raises `ProtocolError`, with the change to make, for an application that calls models past its seats.

    Found by one run on one item, with simulated models in all seats; what the application calls itself is called.
    """
    from collabsim.foreign.calls import require_paired
    from collabsim.foreign.graph_system import GraphSystem

    if isinstance(system, GraphSystem) and items:
        pool, helpers = _simulated(system.pool), _simulated(system.helpers)
        trial = replace(system, pool=pool, helpers=helpers, store=GenerationStore(None))
        trial.study(items[:1])
        require_paired(trial.run(items[0]))


def _simulated(pool: Pool) -> Pool:
    from collabsim.models import SimulatedModel

    return Pool({name: replace(seat, model=SimulatedModel(name=name)) for name, seat in pool.items()})


def _finished(folder: RunFolder, resume: bool) -> dict[str, Any] | None:
    """The result of a training that is over. Raises `ConfigError` for one that is not, unless it is to be resumed."""
    result: dict[str, Any] | None = read_json(folder.file(RESULT_FILE))
    if result is None and not resume and folder.file(CHECKPOINTS_FOLDER).exists():
        raise ConfigError(
            f"{folder.path} holds an unfinished training; add --resume to go on, or name another with --out"
        )
    return result


def _check_autocast(config: TrainConfig) -> None:
    """Raises `ConfigError` where bfloat16 would be computed without instructions for it.

    Seen on such a CPU: matrices at 8 GFLOP/s forward and 1 backward, where float32 has 60 to 85: a step of 76 s for 3.6 s.
    """
    device = likely_device() if config.device == "auto" else config.device
    if config.autocast and device.startswith("cpu") and not computes_natively("bfloat16"):
        raise ConfigError(
            "train.autocast: expected a processor that computes in bfloat16, and this one has no instructions for it, which "
            "makes a step about twenty times slower than in float32; leave autocast out, or name a GPU in train.device"
        )


def _open_policy(system: System, config: TrainConfig) -> Policy:
    from .policy.policy import Policy

    model = {**system.pool, **system.helpers}[config.seat].model
    if not isinstance(model, LocalModel):
        raise ConfigError(
            f"train.seat: {config.seat!r} is a {type(model).__name__}; expected a local model (hub id, folder, .gguf, "
            "package://...), whose weights can be trained"
        )
    return Policy.open(
        model,
        lora=config.lora.settings() if config.lora else None,
        dtype=config.dtype,
        device=config.device,
        autocast=config.autocast,
        gradient_checkpointing=config.gradient_checkpointing,
    )
