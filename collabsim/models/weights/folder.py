"""A Hugging Face folder: is it complete, and what is its identity?

In: a folder. Out: a `ModelFolder`. Weights are checked for having all the bytes that their own header announces; large
files are hashed once (see `cache.py`). Settings that say nothing about behaviour (the version of transformers that
wrote the file, the folder's own name) are no part of an identity, so equal conversions are equal models. Left out on
purpose: loading anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collabsim.errors import DataError, PrerequisiteError
from collabsim.models.weights.cache import sha256_of
from collabsim.seeds import digest

VOCABULARIES = ("tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "vocab.txt", "tekken.json")
"""Any one of these makes a tokenizer."""
TOKENIZER_FILES = (
    *VOCABULARIES,
    "merges.txt",
    "added_tokens.json",
    "special_tokens_map.json",
    "tokenizer_config.json",
    "chat_template.json",
    "chat_template.jinja",
    "additional_chat_templates/*.jinja",
)
SETTINGS = ("config.json", "generation_config.json", "tokenizer_config.json")
_SAFETENSORS = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
"""Formats of floating-point tensors, in the words of that file format."""
_SAYS_NOTHING = frozenset(
    {"transformers_version", "_name_or_path", "name_or_path", "is_local", "local_files_only", "_from_model_config"}
)


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A complete model on this machine."""

    path: Path
    identity: str
    """Hash of weights, settings, tokenizer and template: 64 hex digits."""
    name: str
    """For people; no part of the identity."""
    tokenizer: str
    """Hash of tokenizer and template alone."""
    has_template: bool
    """Whether it brings a chat template; without one a fallback format is used (see `local/chat_format.py`)."""
    window: int | None
    """Longest prompt plus reply that the model was made for, in tokens; None when its config does not say."""
    dtype: str
    """What the weights are stored in, such as `bfloat16`."""


def read_folder(path: Path, *, name: str = "") -> ModelFolder:
    """The model in `path`. Raises `PrerequisiteError` for what is missing, `DataError` for files that are damaged."""
    path = path.absolute()
    config = _config(path)
    weights = weight_files(path)
    for file in weights:
        check_complete(file)
    tokenizer = tokenizer_files(path)
    tokenizer_hash = digest(_hashes(path, tokenizer))
    settings = [path / one for one in SETTINGS if one != "tokenizer_config.json" and (path / one).exists()]
    identity = digest(["model folder", tokenizer_hash, _hashes(path, settings), _hashes(path, weights)])
    called, stored = name or path.resolve().name, _dtype(config, weights[0])
    return ModelFolder(path, identity, called, tokenizer_hash, _has_template(path), _window(config), stored)


def stored_dtype(path: Path) -> str:
    """What the weights in `path` are stored in, such as `bfloat16`: by its config, else by the first weights themselves.

    Raises as `read_folder`.
    """
    return _dtype(_config(path), weight_files(path)[0])


def weight_files(path: Path) -> list[Path]:
    """The files that hold the weights, by the index where there is one. Raises `PrerequisiteError` when any is missing."""
    for kind, pattern in (("model.safetensors", "*.safetensors"), ("pytorch_model.bin", "pytorch_model*.bin")):
        index = path / f"{kind}.index.json"
        if index.exists():
            shards = [path / shard for shard in sorted(set(_json(index).get("weight_map", {}).values()))]
            if missing := [shard.name for shard in shards if not shard.exists()]:
                raise PrerequisiteError(
                    f"model folder {path}: {len(missing)} of {len(shards)} weight files are missing ({missing[0]} ...); "
                    "finish the download"
                )
            return shards
        if (path / kind).exists():
            return [path / kind]
        if files := sorted(one for one in path.glob(pattern) if not one.name.startswith("adapter")):
            return files
    raise PrerequisiteError(f"model folder {path}: expected weights (*.safetensors){_instead(path)}")


def _instead(path: Path) -> str:
    if gguf := sorted(path.glob("*.gguf")):
        return f", got GGUF files; name one of them instead of the folder, such as {gguf[0]}"
    if (path / "adapter_config.json").exists():
        return ", got an adapter only; merge it into its base model first"
    return ", got none; finish the download, or name the folder that holds them"


def tokenizer_files(path: Path) -> list[Path]:
    """Tokenizer and template files, sorted. Raises `PrerequisiteError` when there is no tokenizer."""
    files = sorted(file for pattern in TOKENIZER_FILES for file in path.glob(pattern))
    if not any(file.name in VOCABULARIES for file in files):
        raise PrerequisiteError(
            f"model folder {path}: expected a tokenizer ({', '.join(VOCABULARIES)}), got none; copy the tokenizer files "
            "of the model that it was made from into the folder"
        )
    return files


def check_complete(file: Path) -> None:
    """Raises `DataError` when a weight file has fewer bytes than it should."""
    tensors, start = _tensors(file)
    if file.suffix != ".safetensors":
        return
    size, expected = file.stat().st_size, start + max((tensor["data_offsets"][1] for tensor in tensors), default=0)
    if size != expected:
        raise DataError(f"{file} is damaged: expected {expected} bytes, got {size}; download or copy it again")


def _tensors(file: Path) -> tuple[list[dict[str, Any]], int]:
    """What the header of a safetensors file says of its tensors, and where their bytes begin; none for other files."""
    with file.open("rb") as opened:
        head = opened.read(8)
        if head == b"version ":
            raise DataError(f"{file} is a Git LFS pointer, not weights; run `git lfs pull` in its folder")
        if file.suffix != ".safetensors":
            return [], 0
        length = int.from_bytes(head, "little")
        if not 2 <= length <= file.stat().st_size - 8:
            raise DataError(f"{file} is cut off or no safetensors file (its header should have {length} bytes)")
        header = _parsed(opened.read(length), file)
    return [tensor for name, tensor in header.items() if name != "__metadata__"], 8 + length


def _config(path: Path) -> dict[str, Any]:
    file = path / "config.json"
    if not file.exists():
        raise PrerequisiteError(
            f"model folder {path}: expected config.json{_instead(path) if path.is_dir() else ', and the folder too'}"
        )
    return _json(file)


def _json(file: Path) -> dict[str, Any]:
    return _parsed(file.read_bytes(), file)


def _parsed(content: bytes, file: Path) -> dict[str, Any]:
    try:
        parsed = json.loads(content)
    except ValueError as error:
        raise DataError(f"{file}: expected JSON, got something else ({error}); download or copy it again") from error
    if not isinstance(parsed, dict):
        raise DataError(f"{file}: expected a JSON object, got {type(parsed).__name__}")
    return parsed


def _hashes(path: Path, files: Iterable[Path]) -> list[tuple[str, str]]:
    return [(file.relative_to(path).as_posix(), _hash(file)) for file in files]


def _hash(file: Path) -> str:
    if file.name not in SETTINGS:
        return sha256_of([file])
    return digest({name: value for name, value in _json(file).items() if name not in _SAYS_NOTHING})


def _has_template(path: Path) -> bool:
    if any((path / name).exists() for name in ("chat_template.jinja", "chat_template.json")):
        return True
    settings = path / "tokenizer_config.json"
    return settings.exists() and bool(_json(settings).get("chat_template"))


def _window(config: dict[str, Any]) -> int | None:
    text = config.get("text_config")
    for place in (config, text if isinstance(text, dict) else {}):
        for name in ("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length"):
            if isinstance(window := place.get(name), int) and window > 0:
                return window
    return None


def _dtype(config: dict[str, Any], weights: Path) -> str:
    text = config.get("text_config")
    for place in (text if isinstance(text, dict) else {}, config):
        for name in ("dtype", "torch_dtype"):
            if isinstance(stated := place.get(name), str):
                return stated.removeprefix("torch.")
    kept = (_SAFETENSORS.get(str(tensor.get("dtype"))) for tensor in _tensors(weights)[0])
    return next(filter(None, kept), "float32")
