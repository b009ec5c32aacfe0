"""transformers as a kind of engine: runs everywhere, shows its distributions, and can generate with a learner's own weights.

In: nothing. Out: the record `TRANSFORMERS`. Left out on purpose: the engine itself (`transformers_engine.py`).
"""

from __future__ import annotations

from collabsim.models.engines.engine import Engine
from collabsim.models.engines.engine_kind import EngineKind, EngineReport, EngineSettings
from collabsim.models.engines.torch_probe import TorchProbe, missing_packages

INSTALL = "pip install 'collabsim[local]'"


def probe_transformers() -> TorchProbe:
    """Whether its packages are installed; they are not imported, which takes seconds (see `examine_transformers`)."""
    missing = missing_packages()
    if missing:
        return TorchProbe(None, problem=f"{missing} not installed: {INSTALL}")
    return TorchProbe("installed")


def examine_transformers() -> EngineReport:
    """Imports torch and transformers in a process of its own."""
    from collabsim.models.engines import torch_probe

    probe = torch_probe.probe_torch()
    if not probe.works:
        return EngineReport(False, "cannot be used", f"{probe.problem}: {INSTALL}")
    place = "cuda" if probe.gpus else "cpu"
    return EngineReport(
        True,
        f"transformers {probe.transformers}, torch {probe.torch} on {place}",
        uses_gpu=bool(probe.gpus),
        gpus=probe.gpus,
        gpu_on_request="Apple GPU; for `device: mps` on transformers" if probe.mps else "",
    )


def start_transformers(settings: EngineSettings) -> Engine:
    """A running engine; takes seconds. Raises `ConfigError` and `PrerequisiteError`."""
    from collabsim.models.engines.transformers_engine import TransformersEngine

    return TransformersEngine(
        settings.folder.path,
        dtype=settings.dtype,
        device=settings.device,
        max_model_len=settings.max_model_len,
        threads=settings.threads,
        loaded=settings.loaded,
        during=settings.during,
    )


def shared_road(spec: str, workers: int, asked: str) -> str:
    """Always `shared`: there is nothing to send, whatever is asked for."""
    del spec, workers, asked
    return "shared"


TRANSFORMERS = EngineKind(
    name="transformers",
    title="transformers",
    preference=10,
    probe=probe_transformers,
    examine=examine_transformers,
    start=start_transformers,
    shows_logits=True,
    weight_road=shared_road,
)
