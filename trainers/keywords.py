"""The keywords of `train` and `multiagent_finetuning`, for type checkers and editors.

In: nothing. Out: typed dictionaries with the names of `TrainConfig` and `FinetuneConfig`, without `items`, which both
functions take as an argument; a test holds them to that. Left out on purpose: what the settings mean and which values are
legal; see `settings.py` and `finetune/finetuning_settings.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from .losses import Norm, Unit
from .objectives import CoalitionRule
from .settings import EvalConfig, LoraConfig


class LearnerSettings(TypedDict, total=False):
    """Settings of the update of weights."""

    lr: float
    warmup: int
    schedule: Literal["constant", "linear", "cosine"]
    weight_decay: float
    betas: tuple[float, float]
    grad_clip: float | None
    lora: LoraConfig | Mapping[str, Any] | None
    dtype: Literal["auto", "float32", "bfloat16", "float16"]
    device: str
    autocast: bool
    gradient_checkpointing: bool
    micro_tokens: int


class TrainSettings(LearnerSettings, total=False):
    """Settings of `train`: objective, groups, loss, budget."""

    seat: str
    objective: str | Mapping[str, float]
    loss: str
    group: int
    items_per_step: int
    steps: int
    tokens: int | None
    seed: int
    partner_noise: Literal["auto", "crossed", "shared", "independent"]
    partner_draws: int
    coalition: CoalitionRule
    resample: int
    norm: Norm
    norm_tokens: int | None
    clip: float | tuple[float, float]
    ratio: Unit
    cap: float | None
    kl: float
    epochs: int
    eval: EvalConfig | Mapping[str, Any]
    checkpoint_every: int


class FinetuneSettings(LearnerSettings, total=False):
    """Settings of `multiagent_finetuning`: members, debates, the replies that are kept, the tuning."""

    members: Sequence[str] | None
    iterations: int
    debate: Mapping[str, Any]
    support: float
    corrected: float
    epochs: int
    rows_per_step: int
    seed: int
