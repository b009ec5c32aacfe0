"""The policy: a model that learns, and the engine that speaks for it in a live graph.

In: a model's spec. Out: a chat model for a seat, a learner for the optimiser, and `push`, which puts the learner's
weights into the running engine: calls under way end first, weights are replaced in place, what was cached from old ones
goes, the revision grows, and a check follows: log-probabilities of a few tokens must come out of the engine as out of the
learner. Left out on purpose: rollouts, losses, the loop. Nothing here imports torch before a policy is opened.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from collabsim.errors import CallError, CollabsimError, ConfigError
from collabsim.loop import background_loop
from collabsim.models import LocalModel
from collabsim.seeds import digest

from .call_gate import Gate
from .policy_engine import open_engine
from .policy_model import PolicyModel
from .push_check import PushCheck

if TYPE_CHECKING:
    from collabsim.models.engines import Engine

    from .learner import Learner
    from .lora import LoraSettings
    from .weight_transfer import WeightTransfer

DRAIN_SECONDS = 600.0
"""How long a push waits for calls under way."""


class Push(NamedTuple):
    """What a push did."""

    revision: str
    seconds: float
    """From the closing of the gate to its opening, waiting included."""
    gap: float
    """Mean distance of log-probabilities between engine and learner, in nats; see `push_check.py`."""


class Policy:
    """A learner and its engine; made by `Policy.open`, closed by `close` or by the end of a `with` block."""

    def __init__(self, model: PolicyModel, learner: Learner, engine: Engine, transfer: WeightTransfer) -> None:
        model._policy = self
        self.model = model
        """The chat model for a seat: `pool.replace(seat, policy.model)`."""
        self.learner = learner
        self.engine = engine
        self.gate = Gate()
        self._transfer = transfer
        self.shares_weights = getattr(engine, "model", None) is learner.loaded.model
        """Whether the engine generates with the learner's own tensors."""
        self._problem: str | None = None
        self._pushed = self._started = (learner.version, learner.restored)
        self._check = PushCheck(model.prompter, engine, learner)
        self._check.gap()

    @classmethod
    def open(
        cls,
        spec: str | Path | LocalModel,
        *,
        engine: str = "auto",
        lora: LoraSettings | None = None,
        dtype: str = "auto",
        device: str = "auto",
        engine_dtype: Literal["auto", "bfloat16", "float16", "float32"] = "auto",
        autocast: bool = False,
        gradient_checkpointing: bool = False,
        transfer: str = "auto",
        **settings: Any,
    ) -> Policy:
        """Load a model twice, to learn and to speak (once, where the engine shares weights: the learner speaks itself).

        `spec` is a hub id, folder, `.gguf`, `package://...` or a `LocalModel`, whose own settings then hold (`engine`,
        `engine_dtype` and `settings` go with a plain spec only). `dtype`, `device`, `autocast` and
        `gradient_checkpointing` are those of `Learner.load`; `engine_dtype` is vLLM's (`auto`: the folder's). `transfer` is
        the road to a GPU engine (`auto`: `nccl` when a GPU is left for the learner, else `ipc`). `settings` are further
        fields of `LocalModel`: `chat_format`, `max_model_len`, `kv_space_gib`, `tensor_parallel`, ... Raises `ConfigError`,
        `PrerequisiteError`, and `CallError` when engine and learner disagree from the start.

        A bfloat16 engine rounds what it is sent: of a folder in bfloat16, updates smaller than half a rounding step (1e-4 for
        a weight of 0.05) do not reach it until they have added up. A learner that computes in float32 sees them at once and
        runs ahead. Where that matters, take `engine_dtype="float32"`, or `autocast`, which rounds for the learner too.
        """
        model = _policy_model(spec, engine, engine_dtype, settings)
        learner, running, road = open_engine(
            model,
            lora=lora,
            dtype=dtype,
            device=device,
            autocast=autocast,
            gradient_checkpointing=gradient_checkpointing,
            transfer=transfer,
        )
        try:
            return cls(model, learner, running, road)
        except BaseException:
            running.close()
            raise

    @property
    def revision(self) -> str:
        """Version of the weights in the engine: `0`, and one more with every push."""
        return self.engine.revision

    @property
    def problem(self) -> str | None:
        """Why the engine must not be asked now, or None."""
        if self._problem is not None:
            return self._problem
        if self.learner.restored != self._pushed[1]:
            return "the learner's weights were restored and the engine still has older ones; push first"
        if self.shares_weights and self.learner.version != self._pushed[0]:
            return "the learner's weights were changed under the engine that shares them; push first"
        return None

    def push(self, revision: str | None = None, *, timeout: float = DRAIN_SECONDS) -> Push:
        """Put the learner's weights into the engine; returns when it speaks with them.

        `revision` is a whole number as a string; None is one more than now. After a resume, push the checkpoint's. Calls
        under way are waited for, at most `timeout` seconds; new ones wait. Blocks: from a coroutine use `apush`. Raises
        `CallError` when calls do not end, the engine refuses, or the check disagrees; in the last two cases the policy
        refuses calls until a push succeeds.
        """
        _refuse_on_loop()
        following = str(int(self.revision) + 1) if revision is None else revision
        if not following.isdecimal():
            raise ConfigError(f"expected a revision that is a whole number, got {revision!r}")
        started = perf_counter()
        with self.gate.closed(timeout):
            try:
                self._transfer.push(self.learner, following)
                self._pushed = (self.learner.version, self.learner.restored)
                gap = self._check.gap()
            except BaseException as error:
                self._problem = f"the push of revision {following} failed ({error}); push again, or open a new policy"
                raise
            self._problem = None
        return Push(following, perf_counter() - started, gap)

    async def apush(self, revision: str | None = None, *, timeout: float = DRAIN_SECONDS) -> Push:
        """As `push`, for coroutines."""
        return await asyncio.to_thread(self.push, revision, timeout=timeout)

    def frozen(self) -> PolicyModel:
        """The policy as it speaks now, for evaluation: a model whose identity is the content of its weights.

        Its generations may be stored and are found again wherever the same weights speak through the same engine; at
        the start they are those of the model that the policy was made of. Its calls fail once weights have changed.
        Hashes all weights: 0.3 s for 135M parameters. Raises `CallError` when the weights were not pushed.
        """
        if problem := self.problem or self._unpushed():
            raise CallError(problem)
        model = self.model.model_copy()
        model._policy = self
        model._frozen_at = self.revision
        model._frozen_identity = self._identity()
        return model

    def _unpushed(self) -> str | None:
        changed = self.learner.version != self._pushed[0]
        return "the learner's weights have changed since the last push; push before you freeze" if changed else None

    def _identity(self) -> str:
        learner, model = self.learner, self.model
        if self._pushed == self._started and not learner.autocast:
            return model.identity_of_files
        spoken = [model.prompter.digest, model.engine_kind.name, model.number_format, learner.autocast]
        return digest(["policy", learner.content_hash(), *spoken])

    def save(self, folder: Path | str) -> None:
        """Write the learner's weights as a plain Hugging Face folder: a pool member like any other. See `Learner.save`."""
        self.learner.save(folder)

    def close(self) -> None:
        """End the engine; the learner stays."""
        self._problem = "the policy is closed; open a new one"
        self._transfer.close()
        self.engine.close()

    def __enter__(self) -> Policy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _policy_model(
    spec: str | Path | LocalModel, engine: str, engine_dtype: str, settings: dict[str, Any]
) -> PolicyModel:
    if not isinstance(spec, LocalModel):
        return PolicyModel(**{"spec": str(spec), "engine": engine, "dtype": engine_dtype, **settings})
    if settings or (engine, engine_dtype) != ("auto", "auto"):
        raise ConfigError(f"{spec.spec}: this model has its settings already; change them where it is made")
    return PolicyModel(**{name: getattr(spec, name) for name in spec.model_fields_set})


def _refuse_on_loop() -> None:
    try:
        running = asyncio.get_running_loop()
    except RuntimeError:
        return
    if running is background_loop():
        raise CollabsimError("a push would block collabsim's own event loop, and wait for ever; await `apush` there")
