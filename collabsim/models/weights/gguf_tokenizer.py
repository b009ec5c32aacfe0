"""Is the tokenizer of a converted model the one that its GGUF file describes?

In: a GGUF file's metadata and a tokenizer made from it. Out: the same tokenizer, mended: converters lose whether a BOS is
put in front (a Gemma-3-270M without its BOS solves 7% of sums, with it 52%), which tokens end a turn, and sometimes the
template. Left out on purpose: comparing every merge.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TURN_ENDS = ("<|im_end|>", "<end_of_turn>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|end_of_turn|>", "<turn|>")
_CONTROL = 3


@dataclass(frozen=True, slots=True)
class TokenizerFacts:
    """What the metadata says; None or empty where it says nothing."""

    special: Mapping[str, tuple[int, str]]
    """Id and text of `bos_token`, `eos_token`, `unk_token` and `pad_token`, those that exist."""
    adds_bos: bool | None
    """Whether every prompt begins with BOS; None when neither the file nor a rule of its kind says."""
    adds_space: bool | None
    """Whether a space is put in front of a text; None when not said."""
    template: str | None
    stop_ids: tuple[int, ...]
    """All tokens that end a reply."""
    tokens: int
    """Size of the vocabulary."""


def facts_of(metadata: Mapping[str, Any]) -> TokenizerFacts:
    """The facts in a GGUF file's metadata."""

    def stated(name: str) -> Any:
        return metadata.get(f"tokenizer.ggml.{name}")

    tokens: list[str] = stated("tokens") or []
    template = metadata.get("tokenizer.chat_template")
    keys = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}
    ids = {name: stated(f"{key}_token_id") for name, key in keys.items()}
    special = {name: (known, tokens[known]) for name, known in ids.items() if known is not None and known < len(tokens)}
    is_sentencepiece = stated("model") == "llama"
    adds_bos = stated("add_bos_token")
    if adds_bos is None and is_sentencepiece:
        adds_bos = True  # what llama.cpp does when the file is silent
    if "bos_token" not in special:
        adds_bos = None
    return TokenizerFacts(
        special,
        adds_bos,
        stated("add_space_prefix") if is_sentencepiece else None,
        template or None,
        _stop_ids(metadata, tokens, template or ""),
        len(tokens),
    )


def _stop_ids(metadata: Mapping[str, Any], tokens: list[str], template: str) -> tuple[int, ...]:
    named = [metadata.get(f"tokenizer.ggml.{end}_token_id") for end in ("eos", "eot", "eom")]
    kinds = metadata.get("tokenizer.ggml.token_type") or []
    ends_turn = [
        number
        for number, (text, kind) in enumerate(zip(tokens, kinds, strict=False))
        if kind == _CONTROL and text in TURN_ENDS and text in template
    ]
    return tuple(dict.fromkeys([known for known in named if known is not None] + ends_turn))


def mend(tokenizer: Any, facts: TokenizerFacts) -> None:
    """Set whatever of the facts can be set on a tokenizer. Look at `differences` after saving and loading it again."""
    for name in ("bos_token", "eos_token", "unk_token", "pad_token"):
        known = facts.special.get(name)
        if getattr(tokenizer, f"{name}_id") != (known[0] if known else None):
            setattr(tokenizer, name, known[1] if known else None)
    if facts.adds_bos is not None and adds_bos(tokenizer) != facts.adds_bos:
        tokenizer.add_bos_token = facts.adds_bos
    if tokenizer.chat_template != facts.template:
        tokenizer.chat_template = facts.template
    if facts.adds_space is False and adds_space(tokenizer):
        splitter = tokenizer.backend_tokenizer.pre_tokenizer
        if hasattr(splitter, "prepend_scheme"):
            splitter.prepend_scheme = "never"


def drop_strangers(folder: Path, facts: TokenizerFacts) -> None:
    """Take tokens out of a saved tokenizer that the model has no row for.

    transformers gives a byte-level tokenizer the `<|endoftext|>` of GPT-2 in any case; that text in a question would be
    an id beyond the embedding.
    """
    file = folder / "tokenizer.json"
    saved = json.loads(file.read_text(encoding="utf-8"))
    saved["added_tokens"] = [token for token in saved["added_tokens"] if token["id"] < facts.tokens]
    file.write_text(json.dumps(saved, ensure_ascii=False), encoding="utf-8")


def differences(tokenizer: Any, facts: TokenizerFacts) -> list[str]:
    """What differs between a tokenizer and the facts, in words; empty when it may be used."""
    differing = []
    for name, (known, text) in facts.special.items():
        if (got := getattr(tokenizer, f"{name}_id")) != known:
            differing.append(f"{name} should be {known} ({text!r}), is {got}")
    if facts.adds_bos is not None and adds_bos(tokenizer) != facts.adds_bos:
        differing.append(f"BOS should {'' if facts.adds_bos else 'not '}be put in front of a prompt")
    if facts.adds_space is not None and adds_space(tokenizer) != facts.adds_space:
        differing.append(f"a space should {'' if facts.adds_space else 'not '}be put in front of a text")
    if tokenizer.chat_template != facts.template:
        differing.append("the chat template is another one")
    if len(tokenizer) > facts.tokens:
        differing.append(f"it has {len(tokenizer)} tokens, the model {facts.tokens}")
    return differing


def adds_bos(tokenizer: Any) -> bool:
    """Whether the tokenizer puts its BOS in front of a text by itself."""
    ids = tokenizer.encode("a")
    return tokenizer.bos_token_id is not None and ids[:1] == [tokenizer.bos_token_id]


def adds_space(tokenizer: Any) -> bool:
    """Whether the tokenizer puts a space in front of a text."""
    first: str = tokenizer.convert_ids_to_tokens(tokenizer.encode("a", add_special_tokens=False))[0]
    return first.startswith("▁")
