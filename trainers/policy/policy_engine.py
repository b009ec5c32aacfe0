"""What a policy is opened with: its learner, its engine, and the road between the two.

In: the settings of a local model and of a learner. Out: all three, running. On a CPU, vLLM runs in this process; on GPUs
in its own, with weights sent by IPC (one GPU for both) or NCCL (a GPU for the learner); with transformers, the learner's own
model generates. Left out on purpose: everything that happens later.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from collabsim.errors import ConfigError, PrerequisiteError

if TYPE_CHECKING:
    from collabsim.models.engines.engine import Engine

    from .gpu_transfer import Road
    from .learner import Learner
    from .lora import LoraSettings
    from .policy_model import PolicyModel
    from .weight_transfer import WeightTransfer


def open_engine(
    model: PolicyModel, *, lora: LoraSettings | None, transfer: str, device: str, **learner_settings: Any
) -> tuple[Learner, Engine, WeightTransfer]:
    """Learner, engine and road for `model`; `learner_settings` and `device` are those of `Learner.load`.

    Raises `ConfigError` for settings that do not go together, and what loading raises.
    """
    from .layer_placement import device_names
    from .learner import Learner

    folder = Path(model.folder.path)
    if model.engine_kind == "transformers":
        place = device if device != "auto" else model.device
        if len(device_names(place)) > 1:
            raise ConfigError(
                f"train.device: with `engine: transformers` the learner itself speaks, from one device, got {place}; name "
                "one, or set `engine: vllm`"
            )
        learner = Learner.load(folder, lora=lora, device=place, **learner_settings)
        return learner, *_shared(model, learner)
    road = _road(model, transfer)
    if road == "nccl" and device == "auto":
        device = f"cuda:{model.tensor_parallel}"  # the engine takes the first ones
    learner = Learner.load(folder, lora=lora, device=device, **learner_settings)
    check_names(folder, learner)
    return learner, *_vllm(model, road)


def _shared(model: PolicyModel, learner: Learner) -> tuple[Engine, WeightTransfer]:
    from collabsim.models.engines.transformers_engine import TransformersEngine

    from .weight_transfer import SharedWeights

    if model.dtype not in ("auto", learner.weight_dtype):
        raise ConfigError(
            f"{model.spec}: with `engine: transformers` the learner itself speaks, in {learner.weight_dtype}; leave the "
            f"engine's dtype {model.dtype} out, or set the learner's"
        )
    model.dtype = cast(Any, learner.weight_dtype)  # part of the identity
    engine = TransformersEngine(
        learner.folder,
        max_model_len=model.max_model_len,
        threads=model.threads,
        loaded=learner.loaded,
        during=learner.turn,
    )
    return engine, SharedWeights(engine)


def _vllm(model: PolicyModel, road: Road | None) -> tuple[Engine, WeightTransfer]:
    from collabsim.models.engines.vllm_cpu import InProcessEngine
    from collabsim.models.engines.vllm_engine import vllm_engine
    from collabsim.models.engines.vllm_gpu import AsyncEngine

    from .gpu_transfer import GpuTransfer
    from .weight_transfer import InPlaceReload

    engine = vllm_engine(
        Path(model.folder.path),
        dtype=model.number_format,
        max_model_len=model.max_model_len,
        kv_space_gib=model.kv_space_gib,
        tensor_parallel=model.tensor_parallel,
        gpu_memory=model.gpu_memory,
        weight_transfer=road,
    )
    if road is not None:
        return engine, GpuTransfer(cast(AsyncEngine, engine), road, model.tensor_parallel)
    return engine, InPlaceReload(cast(InProcessEngine, engine))


def _road(model: PolicyModel, transfer: str) -> Road | None:
    """The road to a GPU engine; None on a CPU."""
    from collabsim.models.engines.vllm_probe import probe_vllm

    found = probe_vllm()
    if not found.works:
        raise PrerequisiteError(f"{model.spec}: {found.problem}; or set `engine: transformers`")
    import torch

    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not gpus:
        if transfer != "auto":
            raise ConfigError(f"transfer {transfer!r} is a road between GPUs, and there is none here; leave it out")
        return None
    return choose_road(transfer, gpus, model.tensor_parallel)


def choose_road(transfer: str, gpus: int, workers: int) -> Road:
    """`nccl` where a GPU is left beside the engine's `workers`, else `ipc`. Raises `ConfigError` for what cannot be."""
    spare = gpus > workers
    road: Road = "nccl" if transfer == "nccl" or (transfer == "auto" and spare) else "ipc"
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


def check_names(folder: Path, learner: Learner) -> None:
    """Raises `ConfigError` unless what the learner sends has the names of the checkpoint that vLLM was started from.

    vLLM only logs a weight that a reload leaves out, and goes on with the old one.
    """
    from safetensors import safe_open

    stored: set[str] = set()
    for file in folder.glob("*.safetensors"):
        with safe_open(file, "pt") as opened:
            stored.update(opened.keys())
    sent = {name for name, _ in learner.weights()}
    left_out, unknown = stored - sent - learner.tied, sent - stored - learner.tied
    if stored and (left_out or unknown):
        raise ConfigError(
            f"{folder.name}: expected the learner to send the weights of the checkpoint under their names, "
            f"{len(left_out)} would be left out and {len(unknown)} are unknown to it ({sorted(left_out | unknown)[0]}, ...); "
            "use `engine: transformers` for this architecture"
        )
