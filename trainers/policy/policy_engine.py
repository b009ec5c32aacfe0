"""The opening of a policy: its learner, its engine, and what sends weights from one to the other.

In: the settings of a local model and of a learner. Out: all three, running. The model's kind of engine names the road of the
weights (`weight_roads.py`): on some the engine generates with the learner's own tensors, on others it holds a copy. Left out
on purpose: everything that happens later.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from collabsim.errors import ConfigError

from .weight_roads import Road, road_named

if TYPE_CHECKING:
    from collabsim.models.engines import Engine

    from .learner import Learner
    from .lora import LoraSettings
    from .policy_model import PolicyModel
    from .weight_transfer import WeightTransfer


def open_engine(
    model: PolicyModel, *, lora: LoraSettings | None, transfer: str, device: str, **learner_settings: Any
) -> tuple[Learner, Engine, WeightTransfer]:
    """Learner, engine and transfer for `model`; `learner_settings` and `device` are those of `Learner.load`.

    Raises `ConfigError` for settings that do not go together, and what loading raises.
    """
    kind = model.engine_kind
    if kind.weight_road is None:
        raise ConfigError(
            f"{model.spec}: the engine {kind.name!r} cannot speak for a model that learns; set another `engine` for this "
            "seat"
        )
    name = kind.weight_road(model.spec, model.tensor_parallel, transfer)
    road = road_named(name)
    if road.shares_weights:
        learner = _sharing_learner(model, device, lora=lora, **learner_settings)
        settings = replace(model.engine_settings(), weight_road=name, loaded=learner.loaded, during=learner.turn)
    else:
        learner = _sending_learner(model, road, device, lora=lora, **learner_settings)
        settings = replace(model.engine_settings(), weight_road=name)
    engine = kind.start(settings)
    return learner, engine, road.transfer(engine, model.tensor_parallel)


def _sharing_learner(model: PolicyModel, device: str, **learner_settings: Any) -> Learner:
    """A learner whose own model generates: on one device, in its own number format, which becomes the policy's."""
    from .layer_placement import device_names
    from .learner import Learner

    name = model.engine_kind.name
    place = device if device != "auto" else model.device
    if len(device_names(place)) > 1:
        raise ConfigError(
            f"train.device: with `engine: {name}` the learner itself speaks, from one device, got {place}; name one, or set "
            "`engine: vllm`"
        )
    learner = Learner.load(Path(model.folder.path), device=place, **learner_settings)
    if model.dtype not in ("auto", learner.weight_dtype):
        raise ConfigError(
            f"{model.spec}: with `engine: {name}` the learner itself speaks, in {learner.weight_dtype}; leave the engine's "
            f"dtype {model.dtype} out, or set the learner's"
        )
    model.dtype = cast(Any, learner.weight_dtype)  # part of the identity
    return learner


def _sending_learner(model: PolicyModel, road: Road, device: str, **learner_settings: Any) -> Learner:
    """A learner beside an engine that holds a copy of its weights."""
    from .learner import Learner

    if road.own_gpu and device == "auto":
        device = f"cuda:{model.tensor_parallel}"  # the engine takes the first ones
    folder = Path(model.folder.path)
    learner = Learner.load(folder, device=device, **learner_settings)
    check_names(folder, learner)
    return learner


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
