"""The learner: its weights under checkpoint names, LoRA merged beside the base, folders, states."""

from __future__ import annotations

import copy
import json

import pytest
from collabsim.trainers.policy.token_row import TokenRow
from engines import requires
from tiny_folders import CHATML
from tiny_policy import disturb
from tiny_vllm import vllm_folder

from collabsim.errors import ConfigError, DataError

pytestmark = requires("torch", "transformers")
needs_peft = requires("peft")

ROWS = [TokenRow((1, 7, 9), (11, 12, 2)), TokenRow((1, 30), (40, 41))]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("models")
    return {
        "untied": vllm_folder(place / "untied", template=CHATML),
        "tied": vllm_folder(place / "tied", template=CHATML, tied=True),
        "bfloat16": vllm_folder(place / "bfloat16", template=CHATML, tied=True, dtype="bfloat16"),
    }


def load(folder, **settings):
    from collabsim.trainers.policy.learner import Learner

    return Learner.load(folder, **settings)


def adapters(**settings):
    from collabsim.trainers.policy.lora import LoraSettings

    return LoraSettings(**{"rank": 4, "alpha": 8, **settings})


def stored(folder):
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


@pytest.mark.parametrize("kind", ["untied", "tied"])
def test_weights_have_the_names_and_values_of_the_checkpoint(folders, kind):
    import torch

    weights = dict(load(folders[kind]).weights())
    files = stored(folders[kind])
    assert weights.keys() == files.keys()
    assert all(torch.equal(weights[name], tensor) for name, tensor in files.items())


def test_a_tied_weight_is_named_once(folders):
    learner = load(folders["tied"])
    names = [name for name, _ in learner.weights()]
    assert len(names) == len(set(names))
    assert "lm_head.weight" not in names
    assert learner.tied == {"lm_head.weight"}


def test_a_learner_of_16_bit_weights_learns_in_32(folders):
    learner = load(folders["bfloat16"])
    assert {str(parameter.dtype) for parameter in learner.parameters()} == {"torch.float32"}
    assert (learner.dtype, learner.weight_dtype) == ("float32", "float32")


def test_autocast_computes_in_bfloat16_with_float32_weights(folders):
    import torch

    exact, rounded = load(folders["untied"]), load(folders["untied"], autocast=True)
    assert (rounded.dtype, rounded.weight_dtype) == ("bfloat16", "float32")
    a, b = torch.cat(exact.token_logprobs(ROWS)), torch.cat(rounded.token_logprobs(ROWS))
    assert 1e-6 < (a - b).abs().max() < 0.2
    b.sum().backward()
    assert all(parameter.grad.dtype == torch.float32 for parameter in rounded.parameters())


def test_the_version_grows_with_an_optimiser_step_and_not_without(folders):
    import torch

    learner = load(folders["untied"])
    optimizer = torch.optim.AdamW(learner.parameters(), lr=1e-3)
    before = learner.version
    torch.cat(learner.token_logprobs(ROWS)).sum().backward()
    assert learner.version == before
    optimizer.step()
    assert learner.version > before


@needs_peft
def test_adapters_alone_learn_and_start_at_the_model_itself(folders):
    import torch

    plain, learner = load(folders["tied"]), load(folders["tied"], lora=adapters())
    assert all(".lora_" in name for name in learner.state())
    torch.testing.assert_close(
        torch.cat(learner.token_logprobs(ROWS)), torch.cat(plain.token_logprobs(ROWS)), atol=1e-6, rtol=1e-6
    )


@needs_peft
def test_adapters_start_alike_for_a_seed_and_leave_the_global_generator_alone(folders):
    import torch

    states = torch.get_rng_state()
    first, second = load(folders["tied"], lora=adapters()).state(), load(folders["tied"], lora=adapters()).state()
    other = load(folders["tied"], lora=adapters(seed=1)).state()
    assert torch.equal(states, torch.get_rng_state())
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)


@needs_peft
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [("untied", "auto"), ("tied", "auto"), ("bfloat16", "auto"), ("bfloat16", "bfloat16"), ("bfloat16", "float32")],
)
def test_merged_weights_are_those_of_pefts_own_merge(folders, kind, dtype):
    import torch

    learner = load(folders[kind], lora=adapters(), dtype=dtype)
    disturb(learner)
    merged = copy.deepcopy(learner._model).merge_and_unload(safe_merge=False)
    expected = dict(merged.named_parameters())
    weights = dict(learner.weights())
    assert weights.keys() == stored(folders[kind]).keys()
    assert all(torch.equal(weights[name], expected[name]) for name in weights)


@needs_peft
def test_merging_leaves_the_base_as_it_was(folders):
    import torch

    learner = load(folders["untied"], lora=adapters())
    disturb(learner)
    before = torch.cat(learner.token_logprobs(ROWS))
    for _ in range(3):
        list(learner.weights())
    assert torch.equal(torch.cat(learner.token_logprobs(ROWS)), before)


@needs_peft
def test_reading_merged_weights_does_not_switch_gradients_off_for_the_reader(folders):
    import torch

    for _ in load(folders["untied"], lora=adapters()).weights():
        assert torch.is_grad_enabled()


@needs_peft
@pytest.mark.filterwarnings("ignore:Model has `tie_word_embeddings:UserWarning")
@pytest.mark.parametrize("targets", [("lm_head",), ("embed_tokens",), ("q_proj", "embed_tokens")])
def test_an_adapter_on_a_tied_weight_is_refused(folders, targets):
    with pytest.raises(ConfigError, match="tied"):
        load(folders["tied"], lora=adapters(targets=targets))


@needs_peft
def test_an_unknown_target_is_refused(folders):
    with pytest.raises(ConfigError, match="targets"):
        load(folders["tied"], lora=adapters(targets=("no_such_layer",)))


@pytest.mark.parametrize("settings", [{"rank": 0}, {"alpha": 0}])
def test_impossible_adapters_are_refused(settings):
    with pytest.raises(ConfigError, match="lora"):
        adapters(**settings)


@pytest.mark.parametrize("lora", [False, pytest.param(True, marks=needs_peft)])
@pytest.mark.parametrize("kind", ["untied", "tied"])
def test_a_saved_folder_is_a_model_that_scores_like_the_learner(folders, kind, lora, tmp_path):
    import torch

    learner = load(folders[kind], lora=adapters() if lora else None)
    disturb(learner, 0.02)
    learner.save(tmp_path / "policy")
    again = load(tmp_path / "policy")
    torch.testing.assert_close(
        torch.cat(again.token_logprobs(ROWS)), torch.cat(learner.token_logprobs(ROWS)), atol=1e-4, rtol=1e-4
    )
    assert again.tied == learner.tied


def test_a_saved_folder_keeps_dtype_tokenizer_and_template(folders, tmp_path):
    from collabsim.models.weights.folder import read_folder

    learner = load(folders["bfloat16"])
    learner.save(tmp_path / "policy")
    before, after = read_folder(folders["bfloat16"]), read_folder(tmp_path / "policy")
    assert after.tokenizer == before.tokenizer
    assert after.has_template
    assert {str(tensor.dtype) for tensor in stored(tmp_path / "policy").values()} == {"torch.bfloat16"}
    assert json.loads((tmp_path / "policy" / "config.json").read_text())["dtype"] == "bfloat16"


def test_saving_unchanged_weights_gives_the_same_weights_to_the_bit(folders, tmp_path):
    import torch

    load(folders["bfloat16"]).save(tmp_path / "policy")
    old, new = stored(folders["bfloat16"]), stored(tmp_path / "policy")
    assert old.keys() == new.keys()
    assert all(torch.equal(old[name], new[name]) for name in old)


def test_saving_over_a_folder_replaces_it_and_leaves_nothing_else(folders, tmp_path):
    learner = load(folders["untied"])
    learner.save(tmp_path / "policy")
    (tmp_path / "policy" / "stale").write_text("x")
    learner.save(tmp_path / "policy")
    assert not (tmp_path / "policy" / "stale").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["policy"]


def test_a_save_that_fails_leaves_the_folder_that_was_there(folders, tmp_path, monkeypatch):
    import safetensors.torch

    learner = load(folders["untied"])
    learner.save(tmp_path / "policy")
    before = stored(tmp_path / "policy")

    def full(*_, **__):
        raise OSError("no space left on device")

    monkeypatch.setattr(safetensors.torch, "save_file", full)
    disturb(learner)
    with pytest.raises(DataError, match="no space left"):
        learner.save(tmp_path / "policy")
    assert stored(tmp_path / "policy").keys() == before.keys()
    assert [path.name for path in tmp_path.iterdir()] == ["policy"]


def test_a_folder_set_aside_by_a_killed_process_is_put_back(folders, tmp_path):
    from collabsim.trainers.policy.saving import recover

    load(folders["untied"]).save(tmp_path / "policy")
    (tmp_path / "policy").rename(tmp_path / ".policy.previous")
    recover(tmp_path / "policy")
    assert (tmp_path / "policy" / "model.safetensors").exists()


def test_a_state_is_put_back_to_the_bit(folders):
    import torch

    learner = load(folders["tied"])
    state = {name: tensor.clone() for name, tensor in learner.state().items()}
    before = torch.cat(learner.token_logprobs(ROWS))
    disturb(learner)
    assert not torch.equal(torch.cat(learner.token_logprobs(ROWS)), before)
    learner.load_state(state)
    assert torch.equal(torch.cat(learner.token_logprobs(ROWS)), before)
    assert learner.restored == 1


def test_a_state_of_another_learner_is_refused_before_anything_changes(folders):
    import torch

    learner = load(folders["tied"])
    before = torch.cat(learner.token_logprobs(ROWS))
    state = load(folders["untied"]).state()
    with pytest.raises(DataError, match=r"lm_head\.weight"):
        learner.load_state(state)
    assert torch.equal(torch.cat(learner.token_logprobs(ROWS)), before)


def test_the_content_hash_follows_the_weights(folders):
    learner, same = load(folders["tied"]), load(folders["tied"])
    before = learner.content_hash()
    assert same.content_hash() == before
    disturb(learner, 1e-6)
    assert learner.content_hash() != before


def test_a_step_of_the_trainers_optimiser_makes_a_new_version_of_the_weights(folders):
    from collabsim.trainers.optimiser import make_optimiser
    from collabsim.trainers.policy.learner import Learner
    from collabsim.trainers.settings import TrainConfig

    learner = Learner.load(folders["untied"])
    optimiser = make_optimiser(learner.parameters(), TrainConfig(seat="a", lr=1e-3))
    before = learner.version, learner.content_hash()
    learner.token_logprobs([TokenRow((1, 7, 9), (11, 12))])[0].sum().backward()
    optimiser.step()
    assert learner.version > before[0]
    assert learner.content_hash() != before[1]
