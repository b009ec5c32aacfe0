"""A kind of engine as one record: its name, whether it works here, how it is started, and what it can do.

In: functions of one engine. Out: an `EngineKind`, all that the rest of collabsim knows of that engine. Models, the doctor and
the trainers read it and never compare names. Left out on purpose: which kinds there are (`registry.py`), running engines
(`engine.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from collabsim.models.engines.engine import Engine
from collabsim.models.weights.dtype import resolve_dtype

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from collabsim.models.weights.folder import ModelFolder
    from collabsim.models.weights.torch_loading import Loaded


class Probe(Protocol):
    """Whether an engine works on this machine."""

    @property
    def works(self) -> bool:
        """Whether it can be started."""

    @property
    def problem(self) -> str:
        """Why it cannot, and what to do, in one line; empty when it works."""


@dataclass(frozen=True, slots=True)
class EngineReport:
    """What `collabsim doctor` tells of an engine, after trying it."""

    works: bool
    summary: str
    """Versions and device, or what is missing."""
    remedy: str = ""
    """What to do; empty when it works."""
    uses_gpu: bool = False
    """Whether it runs on a GPU here."""
    gpus: tuple[str, ...] = ()
    """Names of the GPUs that it sees, where it tells them."""
    gpu_on_request: str = ""
    """A GPU that it uses when `device` names it, and how."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """What an engine is started with: the settings of a `LocalModel`; each kind reads those that it has a use for."""

    spec: str
    """For messages."""
    folder: ModelFolder
    dtype: str
    """`bfloat16`, `float16` or `float32`; never `auto`."""
    max_model_len: int | None = None
    """Tokens; None: the model's own window."""
    kv_space_gib: float = 1.0
    tensor_parallel: int = 1
    gpu_memory: float = 0.9
    device: str = "auto"
    threads: int | None = None
    weight_road: str | None = None
    """The road on which a learner's weights will come (see `EngineKind.weight_road`); None: they never change."""
    loaded: Loaded | None = None
    """A learner's model, on the road `shared`: the engine generates with it and loads none."""
    during: AbstractContextManager[Any] | None = None
    """Entered around each pass through `loaded`."""


def stored_format(stored: str, device: str) -> str:
    """What `dtype: auto` is on an engine that runs where it is told: the `stored` format where `device` computes in it."""
    return resolve_dtype(stored, "auto", device)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineKind:
    """See the module. Functions that are slow to import or to run do so when they are called."""

    name: str
    """What `engine:` says; part of the identity of every model that runs on it."""
    title: str
    """For people."""
    preference: int | None = None
    """`engine: auto` takes the working kind with the highest; None: only when named."""
    probe: Callable[[], Probe]
    """Takes milliseconds once an engine is known to work; loads no model."""
    start: Callable[[EngineSettings], Engine]
    """Raises `PrerequisiteError` or `ConfigError`."""
    examine: Callable[[], EngineReport] | None = None
    """A trial for the doctor, of seconds; None: `probe` says it all."""
    auto_dtype: Callable[[str, str], str] = stored_format
    """(stored format, device) -> what `dtype: auto` is; loads nothing, since it is part of a model's identity."""
    shows_logits: bool = False
    """Whether running engines are `LogitEngine`s."""
    weight_road: Callable[[str, int, str], str] | None = None
    """(spec, tensor_parallel, road asked for or `auto`) -> the road by which a learner's weights reach an engine of this
    kind: `shared` (it generates with the learner's own), or one that the trainers know. None: no learner can use it."""

    def report(self) -> EngineReport:
        """What the doctor tells of it."""
        if self.examine is not None:
            return self.examine()
        probe = self.probe()
        return EngineReport(probe.works, "works" if probe.works else "cannot be used", probe.problem)
