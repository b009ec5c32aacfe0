"""vLLM as a kind of engine: the fast one, where it can be had; its weights are its own.

In: nothing. Out: the record `VLLM`. On a CPU it runs in this process and is reloaded in place; on GPUs it runs in its own,
and weights are sent by IPC (one GPU for learner and engine) or NCCL (a GPU for the learner). Left out on purpose: the engine
itself (`vllm_engine.py`), and sending (the trainers do).
"""

from __future__ import annotations

from typing import Literal

from collabsim.errors import ConfigError, PrerequisiteError
from collabsim.models.engines import vllm_probe
from collabsim.models.engines.engine import Engine
from collabsim.models.engines.engine_kind import EngineKind, EngineReport, EngineSettings
from collabsim.models.weights.dtype import resolve_dtype

GpuRoad = Literal["ipc", "nccl"]


def working_vllm(spec: str) -> vllm_probe.VllmProbe:
    """The probe. Raises `PrerequisiteError`, with what to do, when vLLM does not work here."""
    probe = vllm_probe.probe_vllm()
    if not probe.works:
        raise PrerequisiteError(f"{spec}: {probe.problem}; or set `engine: transformers`")
    return probe


def probe_vllm() -> vllm_probe.VllmProbe:
    """See `vllm_probe.probe_vllm`."""
    return vllm_probe.probe_vllm()


def examine_vllm() -> EngineReport:
    """What the probe saw, which is a trial already."""
    probe = vllm_probe.probe_vllm()
    if not probe.works:
        return EngineReport(False, probe.version or "missing", probe.problem)
    return EngineReport(True, f"{probe.version} on {probe.device}", uses_gpu=probe.device != "cpu")


def vllm_dtype(stored: str, device: str) -> str:
    """What `dtype: auto` is on the device that vLLM runs on here, among the formats that it has there."""
    probe = vllm_probe.probe_vllm()
    return resolve_dtype(stored, "auto", probe.device or device, probe.dtypes)


def start_vllm(settings: EngineSettings) -> Engine:
    """A running engine; takes seconds. Raises `PrerequisiteError` and `ConfigError`."""
    from collabsim.models.engines.vllm_engine import vllm_engine

    working_vllm(settings.spec)
    return vllm_engine(
        settings.folder.path,
        dtype=settings.dtype,
        max_model_len=settings.max_model_len,
        kv_space_gib=settings.kv_space_gib,
        tensor_parallel=settings.tensor_parallel,
        gpu_memory=settings.gpu_memory,
        weight_transfer=None if settings.weight_road == "reload" else settings.weight_road,
    )


def weight_road(spec: str, workers: int, asked: str) -> str:
    """`reload` on a CPU, else `ipc` or `nccl`. Raises `PrerequisiteError` without vLLM, `ConfigError` for what cannot be."""
    working_vllm(spec)
    import torch

    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if gpus:
        return choose_road(asked, gpus, workers)
    if asked != "auto":
        raise ConfigError(f"transfer {asked!r} is a road between GPUs, and there is none here; leave it out")
    return "reload"


def choose_road(transfer: str, gpus: int, workers: int) -> GpuRoad:
    """`nccl` where a GPU is left beside the engine's `workers`, else `ipc`. Raises `ConfigError` for what cannot be."""
    spare = gpus > workers
    road: GpuRoad = "nccl" if transfer == "nccl" or (transfer == "auto" and spare) else "ipc"
    if road == "nccl" and not spare:
        raise ConfigError(
            f"transfer 'nccl' needs a GPU for the learner beside the {workers} of the engine, got {gpus}; lower "
            "tensor_parallel, or use 'ipc'"
        )
    if road == "ipc" and workers > 1:
        raise ConfigError(
            f"transfer 'ipc' puts learner and engine on one GPU, got tensor_parallel {workers}; set it to 1, or leave a "
            "GPU free"
        )
    return road


VLLM = EngineKind(
    name="vllm",
    title="vLLM",
    preference=20,
    probe=probe_vllm,
    examine=examine_vllm,
    start=start_vllm,
    auto_dtype=vllm_dtype,
    weight_road=weight_road,
)
