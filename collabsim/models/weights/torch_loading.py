"""A local Hugging Face folder as a causal language model of transformers, with its tokenizer.

In: a folder, a dtype and a device. Out: a `Loaded`. Nothing is fetched from a network, and no code from the folder runs.
Left out on purpose: finding and checking folders (`weights/`), several devices, quantised weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collabsim.errors import ConfigError, PrerequisiteError, nearest
from collabsim.extras import install_command
from collabsim.models.weights.dtype import DTYPES, SHORT, resolve_dtype
from collabsim.models.weights.folder import stored_dtype
from collabsim.models.weights.loading_lock import loading_transformers

_CACHED_LAYERS = {"full_attention", "sliding_attention"}


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model that is ready to run."""

    model: Any
    """A `PreTrainedModel` in evaluation mode."""
    tokenizer: Any
    end_ids: frozenset[int]
    """Ids that end a reply: those of the generation config and the tokenizer's own."""
    vocabulary: int
    """Number of token ids that the model can read."""
    positions: int
    """Longest sequence that the model was made for, in tokens."""


def load(folder: Path, dtype: str = "auto", device: str = "auto") -> Loaded:
    """The model in `folder`.

    A dtype of `auto`: see `dtype.resolve_dtype`; a device of `auto`: CUDA where there is a GPU, else the CPU. Raises
    `ConfigError` for a dtype, device or architecture that cannot be, `PrerequisiteError` for a missing package and for a
    folder without a whole model.
    """
    transformers = _transformers()
    if dtype not in DTYPES:
        raise ConfigError(f"{folder}: expected a dtype of {', '.join(DTYPES)}, got {dtype!r}{nearest(dtype, DTYPES)}")
    place = _device(device)
    with _readable(folder), loading_transformers():
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
        _check_architecture(folder, config)
        stored = stored_dtype(folder)
        chosen = resolve_dtype(stored, dtype, place)
        _check_memory(folder, widened=chosen == "float32" and stored in SHORT, device=place, dtype=chosen)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model, report = transformers.AutoModelForCausalLM.from_pretrained(
            folder,
            config=config,
            dtype=chosen,
            local_files_only=True,
            output_loading_info=True,
        )
    # transformers itself fills what is missing with random numbers, and only warns.
    if absent := [*report["missing_keys"], *(name for name, *_ in report["mismatched_keys"])]:
        raise PrerequisiteError(
            f"{folder}: expected all weights, but {len(absent)} are missing or of another shape ({sorted(absent)[0]}, ...); "
            "download or convert the model again"
        )
    text_config = config.get_text_config()
    return Loaded(
        model.to(place).eval(),
        tokenizer,
        frozenset(_end_ids(model.generation_config.eos_token_id, tokenizer.eos_token_id)),
        int(model.get_input_embeddings().num_embeddings),
        int(getattr(text_config, "max_position_embeddings", None) or tokenizer.model_max_length),
    )


def _transformers() -> Any:
    try:
        import torch  # noqa: F401 (transformers imports without it, and fails later)
        import transformers
    except ImportError as error:
        raise PrerequisiteError(
            f"engine transformers needs the packages torch and transformers, and {error.name!r} cannot be imported; "
            f"{install_command(error.name or 'transformers')}, or use another engine"
        ) from error
    return transformers


def _device(device: str) -> str:
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:  # torch built without CUDA asserts
        raise ConfigError(f"expected a device that torch can use here, got {device!r}: {_first_line(error)}") from error
    return device


def _check_architecture(folder: Path, config: Any) -> None:
    """Raises `ConfigError` for models whose state is not keys and values that rows can join and leave."""
    kinds = set(getattr(config.get_text_config(), "layer_types", None) or ())
    strange = sorted(kinds - _CACHED_LAYERS)
    if config.is_encoder_decoder:
        strange.append("encoder-decoder")
    if strange:
        raise ConfigError(
            f"{folder}: engine transformers runs decoders with full or sliding attention, got {config.model_type!r} with "
            f"{', '.join(strange)}; use `engine: vllm`"
        )


def _check_memory(folder: Path, *, widened: bool, device: str, dtype: str) -> None:
    """Raises `PrerequisiteError` when the weights alone do not fit into free memory; `widened`: from 16 bits to 32."""
    size = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    needed, free = size * (2 if widened else 1) / 2**30, _free_gib(device)
    if free is not None and needed > free:
        raise PrerequisiteError(
            f"{folder}: expected {needed:.1f} GiB of free memory on {device} for weights in {dtype}, found {free:.1f}; close "
            "other engines, take a smaller model, or another dtype"
        )


def _free_gib(device: str) -> float | None:
    """Free memory of a device, where it is known."""
    import torch

    if device.startswith("cuda"):
        return float(torch.cuda.mem_get_info(device)[0]) / 2**30
    table = Path("/proc/meminfo")
    if device != "cpu" or not table.exists():
        return None
    available = [line.split()[1] for line in table.read_text().splitlines() if line.startswith("MemAvailable:")]
    return int(available[0]) / 2**20 if available else None


def _end_ids(*sources: int | list[int] | None) -> Iterator[int]:
    for source in sources:
        yield from [source] if isinstance(source, int) else source or ()


@contextmanager
def _readable(folder: Path) -> Iterator[None]:
    """Whatever transformers says about a folder that it cannot read, in one line."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise PrerequisiteError(
            f"{folder}: expected a folder with config, tokenizer and whole weights as `save_pretrained` writes it; "
            f"{_first_line(error)}; download or convert the model again"
        ) from error


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
