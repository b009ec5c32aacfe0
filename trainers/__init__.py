"""Training a node in place: C-RL, its baselines, and the comparison of both.

Names are loaded on first use, so that importing this package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .finetune.finetuning import FinetuneResult, amultiagent_finetuning, multiagent_finetuning
    from .finetune.finetuning_settings import FinetuneConfig
    from .launch import atrain, train
    from .policy.policy import Policy
    from .policy.token_row import TokenRow
    from .settings import TrainConfig
    from .train_result import TrainResult

_HOME = {
    "FinetuneConfig": "finetune.finetuning_settings",
    "FinetuneResult": "finetune.finetuning",
    "Policy": "policy.policy",
    "TokenRow": "policy.token_row",
    "TrainConfig": "settings",
    "TrainResult": "train_result",
    "amultiagent_finetuning": "finetune.finetuning",
    "atrain": "launch",
    "multiagent_finetuning": "finetune.finetuning",
    "train": "launch",
}

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


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)
