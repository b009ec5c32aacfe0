"""From a model's spec in a config to a chat model.

In: a spec such as `simulated:`, `openai:NAME`, `python:package.module:attribute`, a hub id, a folder, a `.gguf` file or
`package://PACKAGE/path`, and its options. Out: a `BaseChatModel`, with nothing loaded or connected yet. A scheme is one
entry of `SCHEMES`, or of the entry-point group `collabsim.models` of any package. Left out on purpose: seats, sampling and
prompts.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any, TypeAlias

from collabsim.errors import ConfigError, PrerequisiteError, nearest
from collabsim.paths import user_path
from collabsim.plugins import load, registered

GROUP = "collabsim.models"

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """What a config says about one model."""

    spec: str
    """The whole spec, scheme included."""
    target: str
    """What follows the scheme."""
    where: str
    """Whose model it is, for messages."""
    base_url: str | None = None
    revision: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    engine: str = "auto"


Maker: TypeAlias = "Callable[[ModelSpec], BaseChatModel]"


def resolve_model(
    spec: str,
    *,
    name: str = "",
    base_url: str | None = None,
    revision: str | None = None,
    options: Mapping[str, Any] | None = None,
    engine: str = "auto",
) -> BaseChatModel:
    """The chat model that `spec` names; `name` is the seat's, for messages only.

    Equal arguments (but for `name`) give models of equal identity. Raises `ConfigError` for an unknown option (naming
    the nearest) or an impossible value, `PrerequisiteError` for a scheme or a package that is not there.
    """
    where = f"model of {name!r}" if name else "model"
    if not isinstance(spec, str) or not spec.strip():
        raise ConfigError(f"{where}: expected a spec such as 'simulated:' or 'openai:NAME', got {spec!r}")
    path = user_path(spec, where)
    scheme, colon, target = spec.partition(":")
    make = _scheme(scheme) if colon else _local
    if make is None and path.exists():
        make = _local
    if make is None:
        known = [*SCHEMES, *(added for added in registered(GROUP) if added not in SCHEMES)]
        raise PrerequisiteError(
            f"{where}: no way to load {spec!r}{nearest(scheme, known)}; expected a hub id, a folder, a .gguf file, or one of "
            f"the schemes {', '.join(f'{name}:' for name in known)}"
        )
    return make(ModelSpec(spec, target, where, base_url, revision, dict(options or {}), engine))


def _scheme(name: str) -> Maker | None:
    """What makes models of a scheme; None for one that is not there."""
    if name in SCHEMES:
        return SCHEMES[name]
    point = registered(GROUP).get(name)
    return None if point is None else partial(_of_package, point)


def _of_package(point: EntryPoint, model: ModelSpec) -> BaseChatModel:
    """The model that a scheme of another package makes."""
    from langchain_core.language_models import BaseChatModel

    made = load(point, "scheme of models")(model)
    if not isinstance(made, BaseChatModel):
        raise ConfigError(
            f"{model.where}: expected the scheme {point.name!r} ({point.value}) to make a LangChain chat model, got "
            f"{type(made).__name__}; correct its package"
        )
    return made


def _simulated(model: ModelSpec) -> BaseChatModel:
    from collabsim.models.simulation.simulated import SimulatedModel

    _refuse(model, base_url=model.base_url, revision=model.revision)
    named = {"name": model.target} if model.target else {}
    return _validated(SimulatedModel, model, {**named, **model.options})


def _openai(model: ModelSpec) -> BaseChatModel:
    from collabsim.models.chat.server import ServerModel

    if not model.target:
        raise ConfigError(f"{model.where}: expected 'openai:NAME', the name as the server knows it, got {model.spec!r}")
    _refuse(model)
    if twice := {"model", "base_url", "revision"} & model.options.keys():
        raise ConfigError(f"{model.where}: {sorted(twice)} stand beside `model:`, not in its options")
    told = {"model": model.target, "base_url": model.base_url, "revision": model.revision}
    return _validated(ServerModel, model, {**{k: v for k, v in told.items() if v is not None}, **model.options})


def _python(model: ModelSpec) -> BaseChatModel:
    from langchain_core.language_models import BaseChatModel

    _refuse(model, base_url=model.base_url, revision=model.revision)
    made = _attribute(model)
    if not isinstance(made, BaseChatModel):
        made = _called(made, model)
    elif model.options:
        raise ConfigError(f"{model.where}: {model.spec!r} is a ready model without options, got {dict(model.options)}")
    if not isinstance(made, BaseChatModel):
        raise ConfigError(
            f"{model.where}: expected {model.spec!r} to be or to make a LangChain chat model, got {type(made).__name__}"
        )
    return made


def _local(model: ModelSpec) -> BaseChatModel:
    from collabsim.models.local.local_model import ENGINE_SETTINGS, LocalModel

    if model.base_url is not None:
        raise ConfigError(
            f"{model.where}: {model.spec!r} runs here and has no base_url; leave it out, or use openai:NAME"
        )
    told = {"spec": model.spec, "engine": model.engine, "revision_of_weights": model.revision}
    _check_options(model, model.options, ["dtype", *ENGINE_SETTINGS, "chat_format"])
    return _validated(LocalModel, model, {**told, **model.options})


SCHEMES: dict[str, Maker] = {
    "simulated": _simulated,
    "openai": _openai,
    "python": _python,
    "package": _local,
}
"""How to make a model, by the word before the first colon of its spec; a spec without one is a local model."""


def _refuse(model: ModelSpec, **settings: str | None) -> None:
    """Raises `ConfigError` for settings that this kind of model cannot obey."""
    if model.engine != "auto":
        settings["engine"] = model.engine
    given = sorted(key for key, value in settings.items() if value is not None)
    if given:
        raise ConfigError(f"{model.where}: {model.spec!r} has no use for {', '.join(given)}; leave it out")


def _validated(kind: type[BaseChatModel], model: ModelSpec, values: Mapping[str, Any]) -> BaseChatModel:
    """An instance of a pydantic class, its complaints turned into one line."""
    from langchain_core.language_models import BaseChatModel
    from pydantic import ValidationError

    inherited = set(BaseChatModel.model_fields) - {"name"}
    _check_options(model, values, [known for known in kind.model_fields if known not in inherited])
    try:
        return kind(**values)
    except ValidationError as error:
        first = error.errors()[0]
        option = ".".join(str(part) for part in first["loc"])
        problem = first["msg"].removeprefix("Value error, ")
        raise ConfigError(f"{model.where}: {option}: {problem}, got {first['input']!r}") from error


def _check_options(model: ModelSpec, options: Iterable[str], known: list[str]) -> None:
    for option in options:
        if option not in known:
            raise ConfigError(
                f"{model.where}: unknown option {option!r}{nearest(option, known)}; {model.spec!r} takes {known}"
            )


def _attribute(model: ModelSpec) -> Any:
    module_name, colon, attribute = model.target.partition(":")
    if not (module_name and colon and attribute):
        raise ConfigError(f"{model.where}: expected 'python:package.module:attribute', got {model.spec!r}")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise PrerequisiteError(
            f"{model.where}: {model.spec!r} needs the module {error.name!r}, which cannot be imported here; "
            "install it, or run where it can be found"
        ) from error
    if not hasattr(module, attribute):
        public = [known for known in vars(module) if not known.startswith("_")]
        raise ConfigError(f"{model.where}: {module_name} has no {attribute!r}{nearest(attribute, public)}")
    return getattr(module, attribute)


def _called(factory: Any, model: ModelSpec) -> Any:
    if not callable(factory):
        raise ConfigError(
            f"{model.where}: expected {model.spec!r} to be a chat model or a function that makes one, "
            f"got {type(factory).__name__}"
        )
    parameters = inspect.signature(factory).parameters.values()
    if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        _check_options(model, model.options, [parameter.name for parameter in parameters])
    try:
        inspect.signature(factory).bind(**model.options)
    except TypeError as error:
        raise ConfigError(f"{model.where}: {model.spec!r}: {error}; give it under `options`") from error
    return factory(**model.options)
