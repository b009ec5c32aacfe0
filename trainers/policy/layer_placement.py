"""One learner over several devices: its layers are spread over them in equal shares, and activations travel.

In: a loaded model and the names of devices. Out: the same model, its parts in their places, by accelerate. Devices take
turns: this is for learners that do not fit into one of them, and no step gets faster. Written for GPUs and tested
with `cpu,cpu` only, where the same hooks are in place and nothing travels. Left out on purpose: data parallel steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from collabsim.errors import ConfigError, PrerequisiteError
from collabsim.extras import install_command
from collabsim.models.weights import Loaded


def device_names(device: str) -> list[str]:
    """The devices that a setting names: `cuda:0,cuda:1` are two. Raises `ConfigError` for names that do not go together."""
    names = [name.strip() for name in device.split(",")]
    if not all(names) or len({name.partition(":")[0] for name in names}) > 1:
        raise ConfigError(f"expected a device, or several of one kind as in cuda:0,cuda:1, got {device!r}")
    return names


def split(loaded: Loaded, devices: Sequence[str]) -> Loaded:
    """`loaded` with its layers on `devices`, first to last; inputs and outputs of the model are on the first.

    Raises `PrerequisiteError` without accelerate, `ConfigError` for a model with fewer layers than devices.
    """
    try:
        from accelerate import dispatch_model
    except ImportError as error:
        raise PrerequisiteError(
            f"a learner on several devices needs the package accelerate; {install_command('accelerate')}; or name one device"
        ) from error
    places = placement(loaded.model, devices)
    model = dispatch_model(loaded.model, places, main_device=devices[0], force_hooks=True)
    return replace(loaded, model=model.eval())


def placement(model: Any, devices: Sequence[str]) -> dict[str, str]:
    """Module to device: the model's blocks in equal numbers, what comes before them on the first one, after them on the last.

    A weight that is also the input embedding's stays with it. Raises `ConfigError` for fewer blocks than devices.
    """
    kinds = set(model._no_split_modules or ())
    blocks = [name for name, module in model.named_modules() if type(module).__name__ in kinds]
    if len(blocks) < len(devices):
        raise ConfigError(f"expected a model of at least {len(devices)} layers for as many devices, got {len(blocks)}")
    places = {name: devices[number * len(devices) // len(blocks)] for number, name in enumerate(blocks)}
    first = {id(weight) for weight in model.get_input_embeddings().parameters()}
    reached = False
    for name, module in model.named_modules():
        reached = reached or name == blocks[-1]
        inside = any(f"{name}.".startswith(f"{block}.") for block in blocks)
        if inside or any(module.children()):
            continue
        own = {id(weight) for weight in module.parameters()}
        places[name] = devices[-1] if reached and own and not own & first else devices[0]
    return places
