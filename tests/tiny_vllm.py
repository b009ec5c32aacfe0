"""A tiny random Llama that vLLM can run (its CPU attention wants heads of 32), and what transformers says about it."""

from __future__ import annotations

import json
from pathlib import Path

from tiny_folders import write_folder

WINDOW = 256
END = 2


def vllm_folder(
    folder: Path,
    seed: int = 0,
    end_ids: tuple[int, ...] = (END,),
    window: int = WINDOW,
    *,
    tied: bool = False,
    template: str | None = None,
    dtype: str = "float32",
) -> Path:
    """A folder with a two-layer Llama and a byte-level tokenizer: nearly every token is one byte."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    write_folder(folder, template=template)
    (folder / "model.safetensors").unlink()
    vocabulary = len(json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]) + 2
    sizes = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "head_dim": 32}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
    ids = {"vocab_size": vocabulary, "bos_token_id": 1, "eos_token_id": list(end_ids), "pad_token_id": 0}
    config = AutoConfig.for_model(
        "llama", max_position_embeddings=window, tie_word_embeddings=tied, **sizes, **heads, **ids
    )
    generator = torch.Generator().manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.15, generator=generator)
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    return folder


def logits(folder: Path, ids: tuple[int, ...], dtype: str = "float32"):
    """Logits of one row by transformers alone, [tokens, vocabulary], float64."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids])).logits[0].double()


def logprobs(folder: Path, prompt: tuple[int, ...], reply: tuple[int, ...], sampling, dtype: str = "float32"):
    """What the reply's tokens have under the tempered, truncated distribution, by hand from transformers' logits."""
    import torch

    rows = logits(folder, prompt + reply, dtype)[len(prompt) - 1 : -1]
    rows = rows / (sampling.temperature or 1.0)
    found = []
    for row, token in zip(rows, reply, strict=True):
        probabilities = torch.softmax(row, dim=-1)
        values, order = probabilities.sort(descending=True)
        kept = torch.ones_like(values, dtype=torch.bool)
        if sampling.top_k:
            kept[sampling.top_k :] = False
        truncated = values * kept / (values * kept).sum()
        kept &= truncated.cumsum(-1) - truncated < sampling.top_p
        total = (values * kept).sum()
        place = (order == token).nonzero().item()
        found.append(float((values[place] * kept[place] / total).log()))
    return found
