"""Merged folders: tied embeddings, identities, what is refused, what a cut-off merge leaves."""

from __future__ import annotations

import json
import shutil

import pytest
from engines import requires

from collabsim.errors import ConfigError
from collabsim.models.merging import merged_folder as merging
from collabsim.models.merging.merge_recipe import MergeRecipe
from collabsim.models.merging.merged_folder import merge, planned_merge
from collabsim.models.weights import read_folder

pytestmark = requires("torch", "transformers", "peft", "tokenizers", "safetensors")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    from models.tiny_transformers import tiny_model

    place = tmp_path_factory.mktemp("models")
    names = {"base": ("llama", 0), "one": ("llama", 1), "two": ("llama", 2), "gemma": ("gemma3_text", 0)}
    return {name: read_folder(tiny_model(place / name, kind, seed)) for name, (kind, seed) in names.items()}


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def weights(folder):
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder.path, dtype=torch.float32)
    return dict(model.named_parameters()), model


@pytest.mark.parametrize("name", ["one", "gemma"])  # gemma's head and embeddings are one tensor
def test_a_model_merged_with_itself_is_itself_tied_embeddings_included(made, name):
    import torch

    merged = merge([made[name], made[name], made[name]], made[name], MergeRecipe("mean"))
    before, _ = weights(made[name])
    after, model = weights(merged)
    assert before.keys() == after.keys()
    assert all(torch.equal(before[key], after[key]) for key in before)
    if name == "gemma":
        assert model.lm_head.weight.data_ptr() == model.get_input_embeddings().weight.data_ptr()


def test_the_mean_of_tied_models_is_the_mean_of_every_tensor(made, tmp_path):
    import torch
    from models.tiny_transformers import tiny_model

    other = read_folder(tiny_model(tmp_path / "other", "gemma3_text", 5))
    merged, _ = weights(merge([made["gemma"], other], made["gemma"], MergeRecipe("mean")))
    (one, _), (two, _) = weights(made["gemma"]), weights(other)
    for name, tensor in merged.items():
        assert torch.allclose(tensor, (one[name] + two[name]) / 2, atol=1e-7), name


def test_deltas_are_added_to_the_base(made):
    import torch

    merged, _ = weights(merge([made["one"], made["two"]], made["base"], MergeRecipe("task_arithmetic", scale=0.5)))
    (base, _), (one, _), (two, _) = (weights(made[name]) for name in ("base", "one", "two"))
    for name, tensor in merged.items():
        assert torch.allclose(tensor, base[name] + 0.5 * (one[name] + two[name] - 2 * base[name]), atol=1e-6), name


def test_path_and_identity_are_known_before_and_do_not_depend_on_the_order(made):
    recipe = MergeRecipe("ties", density=0.5)
    planned = planned_merge([made["two"], made["one"]], made["base"], recipe)
    assert not planned.path.exists()
    assert merge([made["one"], made["two"]], made["base"], recipe) == planned
    assert read_folder(planned.path).tokenizer == planned.tokenizer


def test_everything_that_goes_in_is_part_of_the_identity(made):
    one, two, base = made["one"], made["two"], made["base"]
    plans = [
        planned_merge(members, origin, recipe).identity
        for members, origin, recipe in (
            ([one, two], base, MergeRecipe("ties", density=0.5)),
            ([one, two], base, MergeRecipe("ties", density=0.4)),
            ([one, two], base, MergeRecipe("dare_ties", density=0.5)),
            ([one, two], base, MergeRecipe("dare_ties", density=0.5, seed=1)),
            ([one, two], one, MergeRecipe("ties", density=0.5)),
            ([one, one], base, MergeRecipe("ties", density=0.5)),
            ([one, two, two], base, MergeRecipe("ties", density=0.5)),
        )
    ]
    assert len(set(plans)) == len(plans)


def test_a_merge_is_made_once(made, monkeypatch):
    members = [made["one"], made["two"]]
    merge(members, made["base"], MergeRecipe("mean"))
    monkeypatch.setattr(merging, "_fill", lambda *_: pytest.fail("made again"))
    merge(members, made["base"], MergeRecipe("mean"))


def test_a_merge_that_is_cut_off_leaves_nothing_that_is_taken_for_a_model(made, monkeypatch):
    def killed(folder, *_):
        (folder / "config.json").write_text("{}")
        raise KeyboardInterrupt

    members = [made["one"], made["two"]]
    with monkeypatch.context() as patched:
        patched.setattr(merging, "_fill", killed)
        with pytest.raises(KeyboardInterrupt):
            merge(members, made["base"], MergeRecipe("mean"))
    planned = planned_merge(members, made["base"], MergeRecipe("mean"))
    assert not planned.path.exists()
    assert read_folder(merge(members, made["base"], MergeRecipe("mean")).path).dtype == "float32"


def test_models_of_another_shape_are_refused(made):
    with pytest.raises(ConfigError, match="one architecture"):
        merge([made["one"], made["gemma"]], made["base"], MergeRecipe("mean"))
    assert not planned_merge([made["one"], made["gemma"]], made["base"], MergeRecipe("mean")).path.exists()


def test_models_whose_rows_mean_other_tokens_are_refused(made, tmp_path):
    copy = tmp_path / "strange"
    shutil.copytree(made["one"].path, copy)
    content = json.loads((copy / "tokenizer.json").read_text())
    table = content["model"]["vocab"]
    table["a"], table["b"] = table["b"], table["a"]
    (copy / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ConfigError, match="one vocabulary"):
        merge([made["two"], read_folder(copy)], made["base"], MergeRecipe("mean"))


def test_only_the_latest_merges_stay_on_the_disk(made, monkeypatch):
    import os

    monkeypatch.setattr(merging, "KEPT", 2)
    kept = []
    for seed in range(3):
        kept.append(
            merge([made["one"], made["two"]], made["base"], MergeRecipe("dare_ties", density=0.5, seed=seed)).path
        )
        os.utime(kept[-1], (seed, seed))
    assert [path.exists() for path in kept] == [False, True, True]
