"""LoRA through peft: adapters that learn while the model stays as it is.

In: a transformers model and settings. Out: the model with adapters, and its weights as if they were merged, computed beside
the base and never written into it (merging and unmerging in place would round the base at every push). Imports torch;
peft is imported on use. Left out on purpose: variants of LoRA (DoRA and others), dropout (the importance ratio would
not be 1 where it should be), adapters as files of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from collabsim.errors import ConfigError, PrerequisiteError
from collabsim.extras import install_command
from collabsim.seeds import derive_seed

ADAPTER = "policy"
_PREFIX = "base_model.model."


@dataclass(frozen=True, slots=True)
class LoraSettings:
    """Low-rank adapters, W + (alpha / rank) * B A (Hu et al., arXiv 2106.09685)."""

    rank: int = 16
    alpha: int = 32
    targets: tuple[str, ...] | str = "all-linear"
    """Names of modules as peft takes them; `all-linear` is every linear layer but the output embedding."""
    seed: int = 0
    """Of the random A; B starts at zero, so that training starts at the model itself."""

    def __post_init__(self) -> None:
        if self.rank < 1 or self.alpha < 1:
            raise ConfigError(f"lora: expected rank and alpha of 1 or more, got {self}")


def with_adapters(model: Any, settings: LoraSettings) -> Any:
    """The model as a `PeftModel` whose adapters alone learn; `model` itself now holds the adapters too.

    Raises `PrerequisiteError` without peft, `ConfigError` for targets that the model does not have.
    """
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError as error:
        raise PrerequisiteError(
            f"lora needs the package peft; {install_command('peft')}; or set `lora: null`"
        ) from error
    targets = settings.targets if isinstance(settings.targets, str) else list(settings.targets)
    config = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        target_modules=targets,
        lora_dropout=0.0,
        bias="none",
        task_type="CAUSAL_LM",
    )
    try:
        with torch.random.fork_rng():
            torch.manual_seed(derive_seed("lora", settings.seed))
            adapted = get_peft_model(model, config, adapter_name=ADAPTER).eval()
    except ValueError as error:
        raise ConfigError(f"lora: {str(error).splitlines()[0]}; mend `targets`") from error
    _refuse_tied(adapted)
    return adapted


def _refuse_tied(model: Any) -> None:
    """An adapter on one of two tied weights would untie them, which no checkpoint of this architecture can say."""
    names: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    for tied in names.values():
        if len(tied) > 1 and any(".base_layer." in name for name in tied):
            raise ConfigError(f"lora: {' and '.join(tied)} are one tied weight; take them out of `targets`")


def merged_parameters(model: Any) -> Iterator[tuple[str, Tensor]]:
    """(name in the model without adapters, weight with its adapter merged) of every parameter of a `PeftModel`.

    The sum is rounded once, to the dtype of the base, as peft's own merge does. A weight without an adapter is the
    model's own tensor.
    """
    deltas = {
        f"{name}.base_layer.weight": module
        for name, module in model.named_modules()
        if hasattr(module, "base_layer") and hasattr(module, "get_delta_weight")
    }
    for name, parameter in model.named_parameters():
        if ".lora_" in name:
            continue
        tensor = parameter.detach()
        if (layer := deltas.get(name)) is not None:
            with torch.no_grad():
                # Adapters are float32: the sum is computed in it, where rounding them first would round twice.
                tensor = (tensor + layer.get_delta_weight(ADAPTER)).to(tensor.dtype)
        yield name.removeprefix(_PREFIX).replace(".base_layer.", "."), tensor
