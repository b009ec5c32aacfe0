"""The roads by which a learner's weights reach the engine that speaks for it.

In: a learner. Out: its present weights are in the engine, and nothing that was computed from older ones is left there. All
roads are one small interface; the caller sees to it that no request is in flight, and every road checks it once more.
Left out on purpose: GPUs (see `gpu_transfer.py`), waiting for requests, and the check afterwards (see `policy.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from collabsim.errors import CallError, CollabsimError

from .prefix_cache import check_reset

if TYPE_CHECKING:
    from concurrent.futures import Future

    from .learner import Learner


class WeightTransfer(Protocol):
    """One road to one engine."""

    def push(self, learner: Learner, revision: str) -> None:
        """Put the learner's weights into the engine, which reports `revision` from then on.

        Raises `CallError` when requests are in flight, when the engine refuses, or when its prefix cache could not be
        emptied. After a failure the engine may hold a mixture, and must not be asked before a push that succeeds.
        """

    def close(self) -> None:
        """Free what the road takes up; the engine stays."""


class RenewableEngine(Protocol):
    """An engine that generates with tensors which others change."""

    def renew(self, revision: str) -> None:
        """Say that the weights are another version now. Raises `CallError` while requests are in flight."""


class ReloadableEngine(Protocol):
    """vLLM's engine in this process."""

    def apply(self, function: Callable[[Any], Any], *, revision: str | None = None) -> Future[Any]:
        """Call `function` with vLLM's `LLMEngine` between two steps; the weights are `revision` from then on."""


class SharedWeights:
    """The engine generates with the learner's own tensors: there is nothing to move."""

    def __init__(self, engine: RenewableEngine) -> None:
        self._engine = engine

    def push(self, learner: Learner, revision: str) -> None:
        """See `WeightTransfer.push`. The engine keeps no prefixes, so there is no cache to empty."""
        del learner
        self._engine.renew(revision)

    def close(self) -> None:
        """Nothing is held."""


class InPlaceReload:
    """vLLM in this process (on a CPU): `reload_weights` from an iterator, between two steps of the engine.

    vLLM copies the tensors into memory of its own and packs them anew for its kernels. A tied weight is sent under its
    first name only.
    """

    def __init__(self, engine: ReloadableEngine) -> None:
        self._engine = engine

    def push(self, learner: Learner, revision: str) -> None:
        """See `WeightTransfer.push`."""

        def replace(llm: Any) -> None:
            if llm.has_unfinished_requests():
                raise CallError("expected no request in flight when weights are replaced; wait for them")
            llm.collective_rpc("reload_weights", kwargs={"weights_iterator": learner.weights()})
            llm.apply_model(_pack_tied)
            check_reset(llm.reset_prefix_cache())

        try:
            self._engine.apply(replace, revision=revision).result()
        except CollabsimError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]
            raise CallError(f"vLLM could not take the weights of revision {revision} ({reason})") from error

    def close(self) -> None:
        """Nothing is held."""


def _pack_tied(model: Any) -> None:
    """Have layers whose weight is another layer's pack it again; runs inside vLLM.

    A reload packs a layer for its kernel when the layer's own weights have come. An output layer that is tied to the input
    embedding gets none, and in float32 its kernel would go on with the packed copy of the old ones (vLLM 0.32).
    """
    seen: set[int] = set()
    for layer in model.modules():
        weight = layer._parameters.get("weight")
        if weight is None:
            continue
        if id(weight) in seen:
            layer.quant_method.process_weights_after_loading(layer)
        seen.add(id(weight))
