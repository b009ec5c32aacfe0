"""A LoRA adapter is a model like any other: its base with the adapter merged in."""

from __future__ import annotations

import json

import pytest
from engines import requires

from collabsim.errors import DataError, PrerequisiteError
from collabsim.models.weights import adapter as adapters
from collabsim.models.weights import find_weights

pytestmark = requires("torch", "transformers", "peft", "tokenizers", "safetensors")


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    from models.tiny_transformers import tiny_model

    return tiny_model(tmp_path_factory.mktemp("models") / "base")


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def write_adapter(folder, base, seed=0):
    """A random LoRA of rank 2 on the attention, as peft writes it."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    tuned = get_peft_model(model, LoraConfig(r=2, lora_alpha=8, target_modules=["q_proj", "v_proj"]))
    torch.manual_seed(seed)
    for name, parameter in tuned.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    tuned.save_pretrained(folder)
    return folder


def tensors(path):
    from safetensors.torch import load_file

    return load_file(path / "model.safetensors")


def test_the_model_is_the_base_plus_the_scaled_product_of_the_adapters_matrices(base, tmp_path):
    import torch
    from safetensors.torch import load_file

    adapter = write_adapter(tmp_path / "adapter", base)
    found = find_weights(str(adapter))
    lora, before, after = load_file(adapter / "adapter_model.safetensors"), tensors(base), tensors(found.path)
    touched = 0
    for name, tensor in after.items():
        stem = f"base_model.model.{name.removesuffix('.weight')}"
        delta = torch.zeros_like(tensor)
        if f"{stem}.lora_A.weight" in lora:
            delta = 8 / 2 * lora[f"{stem}.lora_B.weight"] @ lora[f"{stem}.lora_A.weight"]
            touched += 1
        assert torch.allclose(tensor, before[name] + delta, atol=1e-5), name
    assert touched == 4
    assert found.name == "adapter"
    assert find_weights(str(base)).tokenizer == found.tokenizer


def test_an_adapter_is_merged_once_and_by_content(base, tmp_path, monkeypatch):
    first = find_weights(str(write_adapter(tmp_path / "one", base)))
    other = find_weights(str(write_adapter(tmp_path / "two", base, seed=1)))
    monkeypatch.setattr(adapters, "_fill", lambda *_: pytest.fail("made again"))
    assert find_weights(str(tmp_path / "one")) == first
    assert first.identity != other.identity


def test_a_base_beside_the_adapter_is_found_by_a_relative_path(base, tmp_path):
    adapter = write_adapter(tmp_path / "adapter", base)
    (tmp_path / "base").symlink_to(base)
    settings = json.loads((adapter / adapters.SETTINGS).read_text())
    (adapter / adapters.SETTINGS).write_text(json.dumps({**settings, "base_model_name_or_path": "../base"}))
    assert find_weights(str(adapter)).window == 256


@pytest.mark.parametrize(
    ("said", "words"), [("{}", "base_model_name_or_path"), ("[]", "JSON object"), ("{", "JSON object")]
)
def test_an_adapter_that_names_no_base_is_refused(tmp_path, said, words):
    (tmp_path / adapters.SETTINGS).write_text(said)
    with pytest.raises(DataError, match=words):
        find_weights(str(tmp_path))


def test_an_adapter_without_weights_is_refused(base, tmp_path):
    (tmp_path / adapters.SETTINGS).write_text(json.dumps({"base_model_name_or_path": str(base)}))
    with pytest.raises(PrerequisiteError, match=r"adapter_model\.safetensors"):
        find_weights(str(tmp_path))
