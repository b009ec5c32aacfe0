"""Training a node in place: C-RL, its baselines, and the comparison of both.

Names are loaded on first use, so that importing this package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collabsim.lazy import lazy_names

if TYPE_CHECKING:
    from .finetune.finetuning import FinetuneResult, amultiagent_finetuning, multiagent_finetuning
    from .finetune.finetuning_settings import FinetuneConfig
    from .launch import atrain, train
    from .policy.policy import Policy
    from .policy.token_row import TokenRow
    from .settings import TrainConfig
    from .train_result import TrainResult

__all__ = [
    "FinetuneConfig",
    "FinetuneResult",
    "Policy",
    "TokenRow",
    "TrainConfig",
    "TrainResult",
    "amultiagent_finetuning",
    "atrain",
    "multiagent_finetuning",
    "train",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "finetune.finetuning": ["FinetuneResult", "amultiagent_finetuning", "multiagent_finetuning"],
            "finetune.finetuning_settings": ["FinetuneConfig"],
            "launch": ["atrain", "train"],
            "policy.policy": ["Policy"],
            "policy.token_row": ["TokenRow"],
            "settings": ["TrainConfig"],
            "train_result": ["TrainResult"],
        },
    )
