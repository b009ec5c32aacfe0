"""A learner whose layers are on several devices. There is one processor here: parts and hooks are real, the way is not."""

from __future__ import annotations

import pytest
from collabsim.trainers.policy.token_row import TokenRow
from engines import requires
from router_world import start_folder

from collabsim.errors import ConfigError

pytestmark = requires("torch", "transformers", "accelerate")

ROWS = [TokenRow((1, 7, 9), (11, 12, 2)), TokenRow((1, 7, 9), (40, 41)), TokenRow((1, 30), (40, 41))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("split") / "model"
    start_folder(place, 0)
    return place


def load(folder, device, **settings):
    from collabsim.trainers.policy.learner import Learner

    return Learner.load(folder, dtype="float32", device=device, **settings)


def stepped(learner):
    """The learner's scores before and after a step of the trainer's optimiser."""
    import torch
    from collabsim.trainers.optimiser import make_optimiser
    from collabsim.trainers.settings import TrainConfig

    optimiser = make_optimiser(learner.parameters(), TrainConfig(seat="me", lr=1e-2))
    before = torch.cat(learner.token_logprobs(ROWS))
    (-before.mean()).backward()
    torch.nn.utils.clip_grad_norm_(learner.parameters(), 1.0)
    optimiser.step()
    with torch.no_grad():
        return before.detach(), torch.cat(learner.token_logprobs(ROWS))


@pytest.mark.parametrize("rank", [None, 2])
@pytest.mark.parametrize("checkpointing", [False, True])
def test_a_learner_in_parts_scores_learns_and_is_saved_like_a_whole_one(folder, rank, checkpointing, tmp_path):
    import torch
    from collabsim.trainers.policy.lora import LoraSettings
    from safetensors.torch import load_file

    how = {"lora": LoraSettings(rank) if rank else None, "gradient_checkpointing": checkpointing}
    whole, parts = load(folder, "cpu", **how), load(folder, "cpu,cpu", **how)
    for one, other in zip(stepped(whole), stepped(parts), strict=True):
        assert torch.equal(one, other)
    saved = []
    for name, learner in (("whole", whole), ("parts", parts)):
        learner.save(tmp_path / name)
        saved.append(load_file(tmp_path / name / "model.safetensors"))
    assert saved[0].keys() == saved[1].keys() == load_file(folder / "model.safetensors").keys()
    assert all(torch.equal(saved[0][name], saved[1][name]) for name in saved[0])


@pytest.mark.parametrize("tied", [False, True])
def test_layers_go_to_devices_in_turn_and_tied_weights_stay_together(folder, tied):
    from collabsim.trainers.policy.layer_placement import placement

    model = load(folder, "cpu").loaded.model
    if tied:
        model.lm_head.weight = model.model.embed_tokens.weight
    places = placement(model, ["cuda:0", "cuda:1"])
    assert places["model.embed_tokens"] == places["model.layers.0"] == places["model.rotary_emb"] == "cuda:0"
    assert places["model.layers.1"] == places["model.norm"] == "cuda:1"
    assert places["lm_head"] == ("cuda:0" if tied else "cuda:1")
    placed = {name for name, _ in model.named_parameters() for place in places if name.startswith(f"{place}.")}
    assert placed == {name for name, _ in model.named_parameters()}


@pytest.mark.parametrize(
    ("device", "message"),
    [("cpu,", "several of one kind"), ("cpu,cuda:0", "several of one kind"), ("cpu,cpu,cpu", "at least 3 layers")],
)
def test_devices_that_cannot_share_a_model_are_refused(folder, device, message):
    with pytest.raises(ConfigError, match=message):
        load(folder, device)


def test_a_learner_that_speaks_for_itself_is_on_one_device(folder):
    from collabsim.trainers.policy.policy import Policy

    with pytest.raises(ConfigError, match="from one device"):
        Policy.open(folder, engine="transformers", device="cpu,cpu")


@pytest.mark.slow
@requires("vllm")
def test_a_learner_in_parts_is_pushed_into_its_engine(folder):
    import torch
    from collabsim.trainers.policy.policy import Policy

    with Policy.open(folder, engine="vllm", engine_dtype="float32", dtype="float32", device="cpu,cpu") as policy:
        with torch.no_grad():
            policy.learner.parameters()[0].mul_(1.5)
        assert policy.push().gap < 1e-4
