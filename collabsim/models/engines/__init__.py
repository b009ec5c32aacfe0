"""Engines: token ids in, token ids and log-probabilities out.

In: a kind of engine (`registry.py`) and its settings. Out: running engines, shared by all seats that agree in them. Left out
on purpose: chat templates, seats, stores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collabsim.lazy import lazy_names

if TYPE_CHECKING:
    from collabsim.models.engines.engine import Engine, Generation, TokenRequest
    from collabsim.models.engines.engine_kind import EngineKind, EngineReport, EngineSettings
    from collabsim.models.engines.logits import LogitModel, check_same_tokens, logit_model
    from collabsim.models.engines.registry import all_kinds, engine_names, find_engine
    from collabsim.models.engines.shared_engines import close_engines, retire_engine

__all__ = [
    "Engine",
    "EngineKind",
    "EngineReport",
    "EngineSettings",
    "Generation",
    "LogitModel",
    "TokenRequest",
    "all_kinds",
    "check_same_tokens",
    "close_engines",
    "engine_names",
    "find_engine",
    "logit_model",
    "retire_engine",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "engine": ("Engine", "Generation", "TokenRequest"),
            "engine_kind": ("EngineKind", "EngineReport", "EngineSettings"),
            "logits": ("LogitModel", "check_same_tokens", "logit_model"),
            "registry": ("all_kinds", "engine_names", "find_engine"),
            "shared_engines": ("close_engines", "retire_engine"),
        },
    )
