"""Weights to a vLLM engine on GPUs, by vLLM's own weight-transfer engines.

In: a learner on a GPU and an engine that was started for one of two roads. `ipc`: learner and engine share one GPU,
and the engine's process reads the learner's memory through CUDA handles. `nccl`: the learner has a GPU of its own and
broadcasts to all workers of the engine (tensor parallel). Out: as in `WeightTransfer.push`.

Written against vLLM 0.32 (`vllm.distributed.weight_transfer`); its classes are looked up on use. The order of the calls is
tested with a stand-in for the engine; the transfer itself is untested, since it needs a GPU. Left out on
purpose: several learner processes, vLLM servers over HTTP, sparse updates.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Literal, Protocol

from collabsim.errors import CallError, CollabsimError
from collabsim.loop import submit

from .prefix_cache import check_reset

if TYPE_CHECKING:
    from .learner import Learner

Road = Literal["ipc", "nccl"]
SECONDS = 600.0
"""How long the engine may take for one call of a transfer; a worker that died in a broadcast never answers."""


class GpuEngine(Protocol):
    """What these roads need of an engine."""

    @property
    def llm(self) -> Any:
        """vLLM's `AsyncLLM`, whose coroutines belong on collabsim's background loop."""

    def renew(self, revision: str) -> None:
        """Say that the weights are another version now. Raises `CallError` while requests are in flight."""


class GpuTransfer:
    """One road from a learner to the GPUs of an engine; the connection is made at the first push.

    `workers` is the number of GPUs of the engine.
    """

    def __init__(
        self, engine: GpuEngine, road: Road, workers: int, *, connect: Callable[..., Any] | None = None
    ) -> None:
        self._engine = engine
        self._road = road
        self._workers = workers
        self._connect = connect or _connect
        self._sender: Any = None

    def push(self, learner: Learner, revision: str) -> None:
        """See `WeightTransfer.push`."""
        try:
            if self._sender is None:
                self._sender = self._connect(
                    self._road, self._workers, EngineControl(self._engine.llm), learner, self._dtype()
                )
            self._sender.send_weights()
            check_reset(_result(self._engine.llm.reset_prefix_cache()))
        except CollabsimError:
            raise
        except Exception as error:
            self.close()  # a broadcast that broke off leaves both ends of no use
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]
            raise CallError(
                f"vLLM could not take the weights of revision {revision} by {self._road} ({reason})"
            ) from error
        self._engine.renew(revision)

    def close(self) -> None:
        """End the connection."""
        sender, self._sender = self._sender, None
        if sender is not None:
            sender.shutdown()

    def _dtype(self) -> Any:
        return self._engine.llm.model_config.dtype


class EngineControl:
    """What a sender tells the engine; has the methods of vLLM's `VLLMWeightSyncClient`, which block the caller.

    `AsyncLLM` lives on collabsim's background loop, so these must be called from another thread.
    """

    def __init__(self, llm: Any) -> None:
        self._llm = llm

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        """Have the workers make their end of the connection."""
        from vllm.distributed.weight_transfer.base import WeightTransferInitRequest

        _result(self._llm.init_weight_transfer_engine(WeightTransferInitRequest(init_info=init_info)))

    def start_weight_update(self) -> None:
        """Have the workers get ready for weights."""
        _result(self._llm.start_weight_update())

    def update_weights(self, update_info: Any) -> None:
        """Have the workers take weights."""
        from vllm.distributed.weight_transfer.base import WeightTransferUpdateRequest

        _result(self._llm.update_weights(WeightTransferUpdateRequest(update_info=update_info)))

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        """Have the workers pack what they got for their kernels."""
        _result(self._llm.finish_weight_update(weight_version))


def _result(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return submit(coroutine).result(SECONDS)


def _connect(road: Road, workers: int, control: EngineControl, learner: Learner, dtype: Any) -> Any:
    """vLLM's sender for a road, connected."""
    import torch
    from vllm.distributed.weight_transfer import WeightTransferTrainerFactory

    torch.cuda.set_device(learner.device)  # vLLM's senders work on the current device
    return WeightTransferTrainerFactory.trainer_init(
        init_info(road, workers), client=control, source=weight_source(learner, dtype)
    )


def init_info(road: Road, workers: int) -> Any:
    """What vLLM wants to know of the only trainer process about a road."""
    if road == "ipc":
        from vllm.distributed.weight_transfer.ipc_engine import IPCTrainerInitInfo

        return IPCTrainerInitInfo(rank=0, packed=True)
    from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerInitInfo
    from vllm.utils.network_utils import get_open_port

    return NCCLTrainerInitInfo(
        rank=0, master_address="127.0.0.1", master_port=get_open_port(), world_size=1 + workers, packed=True
    )


def weight_source(learner: Learner, dtype: Any) -> Any:
    """The learner as vLLM's `WeightSource`: names, shapes and the tensors, in the dtype that the engine keeps them in."""
    from vllm.distributed.weight_transfer.base import ParamMeta, WeightSource

    class LearnerWeights(WeightSource):  # type: ignore[misc]  # vLLM has no types
        def __init__(self) -> None:
            self._metadata: list[Any] = []

        def metadata(self) -> list[Any]:
            if not self._metadata:  # merging adapters for their shapes is done once: shapes do not change
                self._metadata = [ParamMeta(name, dtype, tuple(tensor.shape)) for name, tensor in learner.weights()]
            return self._metadata

        def __iter__(self) -> Iterator[tuple[str, Any]]:
            return ((name, tensor.to(learner.device, dtype)) for name, tensor in learner.weights())

    return LearnerWeights()
