"""Maximum likelihood on given replies: supervised tuning of one model, by the same update as every other training.

In: a local model, weighted rows, settings. Out: a plain Hugging Face folder (LoRA merged), and the loss of each step. The
order of rows depends on seeds alone. Left out on purpose: where the rows come from, evaluation, and checkpoints on the way:
a tuning that was stopped starts again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collabsim.seeds import derive_seed

from ..baselines import LIKELIHOOD
from ..records import Example
from ..updates import update

if TYPE_CHECKING:
    from collabsim.models import LocalModel

    from ..policy.learner import Learner
    from .finetuning_settings import FinetuneConfig


def imitate(
    model: LocalModel, rows: Sequence[Example], config: FinetuneConfig, key: Sequence[str | int], folder: Path
) -> list[float]:
    """Tune `model` on `rows` and write it into `folder`; mean -log p of a token at each step, in nats, before its update.

    A step's loss is the mean over its tokens, weighted by the rows' advantages. `key` names the tuning: it seeds the order
    of rows and the adapters. Raises what `Learner.load` and `updates.update` raise, `DataError` when the folder cannot be
    written.
    """
    from ..optimiser import make_optimiser, set_rate

    learner = _learner(model, config, key)
    batches = batches_of(rows, config.epochs, config.rows_per_step, key)
    training = config.training(str(key[-1]), len(batches))
    optimizer = make_optimiser(learner.parameters(), training)
    nll = []
    for step, batch in enumerate(batches):
        set_rate(optimizer, step, training)
        divisor = sum(one.advantage * len(one.row) for one in batch)
        settings: dict[str, Any] = {"grad_clip": config.grad_clip, "budget": config.micro_tokens}
        nll.append(update(learner, optimizer, batch, LIKELIHOOD, divisor=divisor, **settings).nll)
    learner.save(folder)
    return nll


def batches_of(
    rows: Sequence[Example], epochs: int, rows_per_step: int, key: Sequence[str | int]
) -> list[list[Example]]:
    """The rows of every step: each epoch has all of them once, in an order of its own that no other order decides."""
    batches = []
    for epoch in range(epochs):
        ordered = sorted(
            rows, key=lambda one: (derive_seed("row order", *key, epoch, one.item, one.row.draw), one.row.tokens)
        )
        batches += [ordered[start : start + rows_per_step] for start in range(0, len(ordered), rows_per_step)]
    return batches


def _learner(model: LocalModel, config: FinetuneConfig, key: Sequence[str | int]) -> Learner:
    from ..policy.learner import Learner

    lora = config.lora.settings() if config.lora else None
    return Learner.load(
        Path(model.folder.path),
        lora=lora and replace(lora, seed=derive_seed(*key, lora.seed)),
        dtype=config.dtype,
        device=config.device if config.device != "auto" else model.device,
        autocast=config.autocast,
        gradient_checkpointing=config.gradient_checkpointing,
    )
