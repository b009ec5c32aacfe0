"""Roads to engines on GPUs, with a stand-in for the engine: what is called in which order, and what vLLM is told.

That bytes arrive needs a GPU and is not tested here.
"""

from __future__ import annotations

import threading
from dataclasses import fields
from types import SimpleNamespace

import pytest
from collabsim.trainers.policy.gpu_transfer import EngineControl, GpuTransfer, init_info, weight_source
from collabsim.trainers.policy.policy_engine import check_names
from engines import requires
from tiny_vllm import vllm_folder

from collabsim.errors import CallError, ConfigError
from collabsim.models.engines.vllm_gpu import AsyncEngine
from collabsim.models.engines.vllm_kind import choose_road

pytestmark = requires("torch", "transformers")


class Llm:
    """An `AsyncLLM` that notes what it is asked to do."""

    def __init__(self):
        self.model_config = SimpleNamespace(max_model_len=16, dtype="torch.bfloat16")
        self.done, self.emptied = [], True

    def get_tokenizer(self):
        return None

    async def init_weight_transfer_engine(self, request):
        self.done.append(("init", request.init_info))

    async def start_weight_update(self):
        self.done.append("start")

    async def update_weights(self, request):
        self.done.append(("update", request.update_info))

    async def finish_weight_update(self, version=None):
        self.done.append(("finish", version))

    async def reset_prefix_cache(self):
        self.done.append("reset")
        return self.emptied

    def shutdown(self):
        self.done.append("shutdown")


class Sender:
    """Sends as vLLM's senders do: through the control, in a thread of its own."""

    def __init__(self, control, learner):
        self.control, self.learner, self.closed, self.problem = control, learner, 0, None
        control.init_weight_transfer_engine({"packed": True})

    def send_weights(self):
        self.control.start_weight_update()
        if self.problem is not None:
            raise self.problem
        thread = threading.Thread(target=self.control.update_weights, args=({"names": self.learner},))
        thread.start()
        thread.join()
        self.control.finish_weight_update()

    def shutdown(self):
        self.closed += 1


@pytest.fixture
def made():
    llm, senders = Llm(), []
    engine = AsyncEngine("tiny", {}, start=lambda _: llm)

    def connect(road, workers, control, learner, dtype):
        senders.append(Sender(control, learner))
        senders[-1].told = (road, workers, dtype)
        return senders[-1]

    yield GpuTransfer(engine, "nccl", 2, connect=connect), engine, llm, senders
    engine.close()


@requires("vllm")
def test_a_push_sends_then_empties_the_prefix_cache_then_grows_the_revision(made):
    transfer, engine, llm, senders = made
    transfer.push(["a"], "1")
    transfer.push(["b"], "2")
    update = ["start", ("update", {"names": ["a"]}), ("finish", None), "reset"]
    assert llm.done == [("init", {"packed": True}), *update, *update]
    assert (engine.revision, len(senders)) == ("2", 1), "one connection for all pushes"
    assert senders[0].told == ("nccl", 2, "torch.bfloat16")
    transfer.close()
    assert senders[0].closed == 1


@requires("vllm")
def test_a_cache_that_stays_full_is_an_error_and_the_revision_stays(made):
    transfer, engine, llm, _ = made
    llm.emptied = False
    with pytest.raises(CallError, match="prefix cache"):
        transfer.push(["a"], "1")
    assert engine.revision == "0"


@requires("vllm")
def test_a_transfer_that_breaks_off_ends_the_connection_and_the_next_makes_a_new_one(made):
    transfer, engine, _, senders = made
    transfer.push(["a"], "1")
    senders[0].problem = RuntimeError("NCCL error")
    with pytest.raises(CallError, match="RuntimeError: NCCL error"):
        transfer.push(["a"], "2")
    assert (engine.revision, senders[0].closed) == ("1", 1)
    transfer.push(["a"], "3")
    assert (engine.revision, len(senders)) == ("3", 2)


def test_a_gpu_engine_with_calls_under_way_takes_no_new_revision(made):
    _, engine, _, _ = made
    engine._tasks.add(object())
    with pytest.raises(CallError, match="in flight"):
        engine.renew("1")
    engine._tasks.clear()


@requires("vllm")
def test_the_control_is_what_vllm_calls_a_client():
    from vllm.distributed.weight_transfer import VLLMWeightSyncClient

    assert isinstance(EngineControl(None), VLLMWeightSyncClient)


@requires("vllm")
def test_the_stand_in_has_the_methods_of_the_real_engine():
    from vllm.v1.engine.async_llm import AsyncLLM

    assert all(hasattr(AsyncLLM, name) for name in vars(Llm) if not name.startswith("_"))


@requires("vllm")
def test_vllm_is_told_of_one_trainer_and_all_workers():
    ipc, nccl = init_info("ipc", 1), init_info("nccl", 4)
    assert (ipc.backend, ipc.is_sender, ipc.packed) == ("ipc", True, True)
    assert (nccl.backend, nccl.is_sender, nccl.world_size) == ("nccl", True, 5)
    assert nccl.master_port > 0
    assert {field.name for field in fields(nccl)} >= {"master_address", "packed", "rank"}


@requires("vllm")
def test_both_roads_are_known_to_vllm_on_both_ends():
    from vllm import EngineArgs
    from vllm.distributed.weight_transfer import WeightTransferEngineFactory, WeightTransferTrainerFactory

    for road in ("ipc", "nccl"):
        assert road in WeightTransferEngineFactory._registry
        assert road in WeightTransferTrainerFactory._registry
        assert EngineArgs(model="x", weight_transfer_config={"backend": road}).weight_transfer_config.backend == road


@requires("vllm")
def test_the_source_announces_exactly_what_it_yields_in_the_dtype_of_the_engine(tmp_path):
    import torch
    from collabsim.trainers.policy.learner import Learner

    learner = Learner.load(vllm_folder(tmp_path / "tied", tied=True))
    source = weight_source(learner, torch.bfloat16)
    announced = [(one.name, one.dtype, one.shape) for one in source.metadata()]
    for _ in range(2):
        assert [(name, tensor.dtype, tuple(tensor.shape)) for name, tensor in source] == announced
    assert {dtype for _, dtype, _ in announced} == {torch.bfloat16}
    assert [name for name, *_ in announced] == [name for name, _ in learner.weights()]


@pytest.mark.parametrize(
    ("transfer", "gpus", "workers", "road"),
    [
        ("auto", 1, 1, "ipc"),
        ("auto", 2, 1, "nccl"),
        ("auto", 4, 2, "nccl"),
        ("ipc", 2, 1, "ipc"),
        ("nccl", 2, 1, "nccl"),
    ],
)
def test_the_road_follows_from_the_gpus(transfer, gpus, workers, road):
    assert choose_road(transfer, gpus, workers) == road


@pytest.mark.parametrize(
    ("transfer", "gpus", "workers"), [("nccl", 1, 1), ("nccl", 2, 2), ("ipc", 4, 2), ("auto", 2, 2)]
)
def test_roads_that_lack_a_gpu_are_refused(transfer, gpus, workers):
    with pytest.raises(ConfigError, match="tensor_parallel"):
        choose_road(transfer, gpus, workers)


def test_weights_under_other_names_than_the_checkpoints_are_refused(tmp_path):
    from collabsim.trainers.policy.learner import Learner
    from safetensors.torch import load_file, save_file

    folder = vllm_folder(tmp_path / "model")
    learner = Learner.load(folder)
    check_names(folder, learner)
    tensors = load_file(folder / "model.safetensors")
    tensors["model.layers.0.extra.weight"] = tensors["model.norm.weight"].clone()
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(ConfigError, match=r"1 would be left out .*model\.layers\.0\.extra\.weight"):
        check_names(folder, learner)
