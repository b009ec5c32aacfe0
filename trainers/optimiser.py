"""The optimiser and its learning rate.

In: parameters and settings. Out: AdamW and a schedule, both with a state that a checkpoint holds. Imports torch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch.optim.lr_scheduler import LambdaLR

from .settings import TrainConfig


def make_optimiser(parameters: Iterable[torch.nn.Parameter], config: TrainConfig) -> tuple[torch.optim.AdamW, LambdaLR]:
    """AdamW (Loshchilov and Hutter 2019) and the learning rate of each step, by `lr`, `warmup` and `schedule`."""
    optimizer = torch.optim.AdamW(list(parameters), lr=config.lr, betas=config.betas, weight_decay=config.weight_decay)
    return optimizer, LambdaLR(optimizer, lambda step: rate(step, config))


def rate(step: int, config: TrainConfig) -> float:
    """The share of `lr` at a step (counted from 0)."""
    if step < config.warmup:
        return (step + 1) / config.warmup
    progress = min((step - config.warmup) / max(config.steps - config.warmup, 1), 1.0)
    if config.schedule == "linear":
        return 1 - progress
    return 0.5 * (1 + math.cos(math.pi * progress)) if config.schedule == "cosine" else 1.0
