"""Tiny random models of several architectures, saved as folders, and the sums that their answers are compared with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tiny_folders import write_folder

WINDOW = 256
END = 2
KINDS = ("llama", "qwen2", "gemma3_text")


def tiny_model(folder: Path, kind: str = "llama", seed: int = 0, end_ids: tuple[int, ...] = (END,)) -> Path:
    """A folder with a two-layer model in float32 whose logits are spread widely enough for texts that vary."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.set_num_threads(1)  # on a busy machine the threads wait for each other far longer than they work
    write_folder(folder)
    (folder / "model.safetensors").unlink()
    vocabulary = len(json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]) + 2
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "head_dim": 8}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    ids = {"vocab_size": vocabulary, "bos_token_id": 1, "eos_token_id": list(end_ids), "pad_token_id": 0}
    sliding = {"sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"]}
    more = sliding if kind == "gemma3_text" else {}
    config = AutoConfig.for_model(kind, max_position_embeddings=WINDOW, **sizes, **heads, **ids, **more)
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder)
    return folder


def with_end_ids(folder: Path, copy: Path, *ids: int) -> Path:
    """A copy of a folder whose generation config names other end tokens."""
    shutil.copytree(folder, copy)
    (copy / "generation_config.json").write_text(json.dumps({"eos_token_id": list(ids), "pad_token_id": 0}))
    return copy


def forward(folder: Path, ids: tuple[int, ...]):
    """Logits of one unpadded row in float32, [tokens, vocabulary], by transformers alone."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids])).logits[0].double()


def greedy_by_generate(folder: Path, prompt: tuple[int, ...], tokens: int) -> tuple[int, ...]:
    """The ids that `model.generate` gives for one row."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = torch.tensor([prompt])
    output = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens, do_sample=False)
    return tuple(output[0, len(prompt) :].tolist())
