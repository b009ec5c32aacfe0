"""Models of a few kilobytes, made on the spot: Hugging Face folders and GGUF files. Random weights, real formats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] | trim"
    " + '<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}"
    "{% if enable_thinking is defined and not enable_thinking %}{{ '<think></think>' }}{% endif %}{% endif %}"
)
STRICT = (
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'system' %}"
    "{{ raise_exception('no system role') }}{% endif %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}"
    "{{ '<|im_start|>' + message['content'] + '<|im_end|>' }}{% endfor %}"
)
SPECIAL = ["<pad>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"]
ADDED = ["<think>", "</think>"]
GGUF_TOKENS = len(SPECIAL) + 256 + 1


def alphabet() -> list[str]:
    """The 256 signs of a byte-level vocabulary."""
    from tokenizers.pre_tokenizers import ByteLevel

    return sorted(ByteLevel.alphabet())


def write_folder(path: Path, *, template: str | None = None, adds_bos: bool = True, seed: int = 0) -> Path:
    """A Llama of one layer with a byte-level tokenizer; returns `path`."""
    from safetensors.numpy import save_file

    path.mkdir(parents=True, exist_ok=True)
    _write_tokenizer(path, template, adds_bos)
    rows = 256 + len(SPECIAL) + len(ADDED)
    config = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    fixed = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "max_position_embeddings": 128}
    ids = {"vocab_size": rows, "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": True}
    _write_json(path / "config.json", {**fixed, **config, **ids})
    save_file(_weights(rows, seed), path / "model.safetensors")
    return path


def _weights(rows: int, seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    shapes = {"model.embed_tokens": (rows, 16), "model.norm": (16,)}
    layer = {f"self_attn.{name}_proj": (16, 16) for name in "qkvo"}
    layer |= {"mlp.gate_proj": (32, 16), "mlp.up_proj": (32, 16), "mlp.down_proj": (16, 32)}
    layer |= {"input_layernorm": (16,), "post_attention_layernorm": (16,)}
    shapes |= {f"model.layers.0.{name}": shape for name, shape in layer.items()}
    return {f"{name}.weight": random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def _write_tokenizer(path: Path, template: str | None, adds_bos: bool) -> None:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

    vocabulary = {token: number for number, token in enumerate([*SPECIAL, *alphabet()])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in SPECIAL])
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token in ADDED])
    if adds_bos:
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    else:
        tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.save(str(path / "tokenizer.json"))
    names = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
    _write_json(path / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", **names})
    if template:
        (path / "chat_template.jinja").write_text(template)


def _write_json(file: Path, value: Any) -> None:
    file.write_text(json.dumps(value))


def write_gguf(file: Path, *, template: str | None = None, adds_bos: bool | None = None, name: str = "tiny") -> Path:
    """A Llama of one layer as a GGUF file with a byte-level vocabulary; returns `file`."""
    from gguf import GGUFWriter, TokenType

    writer = GGUFWriter(file, "llama")
    writer.add_name(name)
    writer.add_context_length(128)
    writer.add_embedding_length(16)
    writer.add_block_count(1)
    writer.add_feed_forward_length(32)
    writer.add_head_count(2)
    writer.add_head_count_kv(2)
    writer.add_rope_dimension_count(8)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-6)
    tokens = [*SPECIAL, *alphabet(), "ab"]
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types([TokenType.CONTROL] * len(SPECIAL) + [TokenType.NORMAL] * 257)
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(0)
    if adds_bos is not None:
        writer.add_add_bos_token(adds_bos)
    if template:
        writer.add_chat_template(template)
    for tensor, value in gguf_weights().items():
        writer.add_tensor(tensor, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def gguf_weights() -> dict[str, np.ndarray]:
    """The tensors that `write_gguf` writes, by their names there."""
    names = {
        "model.embed_tokens": "token_embd",
        "model.norm": "output_norm",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
        "o_proj": "attn_output",
        **{f"{kind}_proj": f"attn_{kind}" for kind in "qkv"},
        **{f"{kind}_proj": f"ffn_{kind}" for kind in ("gate", "up", "down")},
    }
    written = {}
    for name, value in _weights(GGUF_TOKENS, seed=0).items():
        place = name.removesuffix(".weight")
        prefix = "blk.0." if ".layers." in place else ""
        short = names.get(place) or names[place.rpartition(".")[2]]
        written[f"{prefix}{short}.weight"] = value
    return written
