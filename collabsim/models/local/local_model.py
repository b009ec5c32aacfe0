"""A model that runs in this process: messages in, a reply with its exact tokens out.

In: a spec (hub id, folder, `.gguf` file, `package://...`) and how to run it. Out: a chat model whose identity is the
content of its weights, tokenizer and template, known without loading them. It joins three parts that know nothing of each
other: `weights` finds the folder, `template` writes the prompt, an engine samples. Seats that share weights and settings
share one engine, which starts with the first request: a finished sweep starts none.
"""

from __future__ import annotations

import asyncio
import time
from functools import cached_property
from typing import TYPE_CHECKING, Literal, cast

from pydantic import ConfigDict, Field, field_validator

from collabsim.episode import Reply, Tokens, Usage
from collabsim.errors import CallError, ConfigError
from collabsim.models.chat.typed_model import TypedChatModel
from collabsim.models.engines.engine import Engine, TokenRequest
from collabsim.models.engines.engine_kind import EngineKind, EngineSettings
from collabsim.models.engines.registry import check_engine, find_engine
from collabsim.models.engines.shared_engines import shared_engine
from collabsim.models.local.template import Prompter, plan_room
from collabsim.models.weights import ModelFolder, find_weights
from collabsim.models.weights.dtype import likely_device
from collabsim.request import Request
from collabsim.seeds import digest

if TYPE_CHECKING:
    from collabsim.models.engines.logits import LogitEngine, LogitModel

ENGINE_SETTINGS = ("max_model_len", "kv_space_gib", "tensor_parallel", "gpu_memory", "device", "threads")
"""What two seats must agree in to share an engine, beside weights and number format."""


class LocalModel(TypedChatModel):
    """A Hugging Face model in process, on vLLM or on transformers."""

    model_config = ConfigDict(extra="forbid")

    spec: str
    """Hub id, folder, `.gguf` file, or `package://PACKAGE/path` (see `weights.source`)."""
    revision_of_weights: str | None = None
    """Branch, tag or commit of a hub id."""
    engine: str = "auto"
    """A name in `engines.registry`; `auto`: vLLM where it works, else transformers."""
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = "auto"
    chat_format: str | None = None
    """`template`, or a named format for base models: `plain`, `dialogue`, `raw`; None: see `template.Prompter`."""
    max_model_len: int | None = Field(default=None, gt=0)
    """Window in tokens; None: the model's own."""
    kv_space_gib: float = Field(default=1.0, gt=0)
    """KV cache of vLLM on a CPU."""
    tensor_parallel: int = Field(default=1, gt=0)
    """GPUs that share one model (vLLM)."""
    gpu_memory: float = Field(default=0.9, gt=0, le=1)
    """Share of each GPU for weights and KV cache (vLLM)."""
    device: str = "auto"
    """`cpu`, `cuda`, `cuda:1`, `mps` (transformers)."""
    threads: int | None = Field(default=None, gt=0)
    """CPU threads (transformers)."""

    @cached_property
    def folder(self) -> ModelFolder:
        """The model's files, found (and converted, the first time ever) on first use."""
        dtype = "bfloat16" if self.dtype == "auto" else self.dtype
        return find_weights(self.spec, revision=self.revision_of_weights, dtype=dtype)

    @cached_property
    def prompter(self) -> Prompter:
        """Writes this model's prompts."""
        return Prompter(self.folder, self.chat_format)

    @field_validator("engine")
    @classmethod
    def _known_engine(cls, engine: str) -> str:
        try:
            check_engine(engine)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return engine

    @cached_property
    def engine_kind(self) -> EngineKind:
        """Which engine runs here; see `engines.registry` for what `auto` is."""
        return find_engine(self.engine)

    @cached_property
    def number_format(self) -> str:
        """What `dtype` comes to on this machine; the engine is started with this. Loads nothing."""
        if self.dtype != "auto":
            return self.dtype
        device = likely_device() if self.device == "auto" else self.device
        return self.engine_kind.auto_dtype(self.folder.dtype, device)

    @cached_property
    def identity(self) -> str:
        """Content of weights, tokenizer, template and chat format, with engine and number format."""
        return digest(["local", self.folder.identity, self.prompter.digest, self.engine_kind.name, self.number_format])

    @property
    def revision(self) -> str:
        """Version of the weights; a model that is not being trained stays at `0`."""
        return "0"

    async def areply(self, request: Request) -> Reply:
        """One reply with its exact tokens.

        Raises `ContextOverflowError` before any call when the prompt and `max_tokens` do not fit the window, `CallError`
        when the engine fails, `PrerequisiteError` when it cannot be started here.
        """
        started = time.perf_counter()
        sampling = request.sampling
        engine = await asyncio.to_thread(self.running_engine)
        prompt_ids = await asyncio.to_thread(self.prompter.render, request.messages, sampling.template)
        plan_room(len(prompt_ids), sampling.max_tokens, engine.max_model_len)
        stop = tuple(dict.fromkeys((*sampling.stop, *self.prompter.stop)))
        asked = TokenRequest(prompt_ids, sampling.replace(stop=stop), request.seed)
        revision = engine.revision
        generation = await asyncio.wrap_future(engine.submit(asked))
        if engine.revision != revision:
            raise CallError(
                f"{self.spec}: expected one version of the weights throughout a call, got {revision} at its start and "
                f"{engine.revision} at its end; replace weights when no call is under way, then ask again"
            )
        return Reply(
            text=generation.text,
            finish=generation.finish,
            usage=Usage(len(prompt_ids), len(generation.ids)),
            tokens=Tokens(prompt_ids, generation.ids, generation.logprobs),
            revision=revision,
            seconds=time.perf_counter() - started,
        )

    def running_engine(self) -> Engine:
        """The engine of this model, started if it is not running. Takes seconds, so not for the event loop."""
        return shared_engine(self.engine_key, lambda: self.engine_kind.start(self.engine_settings()))

    def engine_settings(self) -> EngineSettings:
        """What this model's engine is started with."""
        options = {name: getattr(self, name) for name in ENGINE_SETTINGS}
        return EngineSettings(spec=self.spec, folder=self.folder, dtype=self.number_format, **options)

    @property
    def engine_key(self) -> str:
        """Equal for models that share an engine."""
        settings = {name: getattr(self, name) for name in ENGINE_SETTINGS}
        return digest([self.folder.identity, self.engine_kind.name, self.number_format, settings])

    def logit_model(self) -> LogitModel:
        """This model one token at a time, for ensembles; starts its engine.

        Raises `ConfigError` for an engine that hands out no full distributions, as vLLM.
        """
        self.check_shows_logits()
        from collabsim.models.local.local_logits import LocalLogits

        return LocalLogits(self.prompter, cast("LogitEngine", self.running_engine()))

    def check_shows_logits(self) -> None:
        """Raises `ConfigError` when the engine would hide its next-token distribution. Starts nothing."""
        if not self.engine_kind.shows_logits:
            raise ConfigError(
                f"{self.spec}: expected an engine that shows its next-token distribution, got {self.engine_kind.name!r}; set "
                "`engine: transformers` on every seat of this pool"
            )

    @property
    def _llm_type(self) -> str:
        return "collabsim-local"
