"""A learner's weights as a plain Hugging Face folder, there in full or not at all.

In: named tensors and the folder that the model came from. Out: a folder with the same config, tokenizer and template, so
that the same prompts go in. Weights are written in the dtype of that folder, as engines speak them, not in the wider one
that the learner keeps. Imports torch. Left out on purpose: checkpoints of a training; see `checkpoint.py`.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor

from collabsim.errors import DataError
from collabsim.models.weights import tokenizer_files

_KEPT = ("generation_config.json",)
_PREVIOUS = ".previous"
WRITE_ERRORS = (OSError, RuntimeError, SafetensorError)
"""What a full disk is called by Python, by torch and by safetensors."""


def checkpoint_dtype(folder: Path) -> torch.dtype:
    """The dtype that the weights of a folder are kept in, by its config; float32 when that does not say."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    dtype_name: Any = None
    for place in (config.get("text_config") or {}, config):
        dtype_name = dtype_name or place.get("dtype") or place.get("torch_dtype")
    dtype = getattr(torch, str(dtype_name or "float32"), None)
    return dtype if isinstance(dtype, torch.dtype) else torch.float32


def tied_names(model: Any) -> frozenset[str]:
    """Names under which a transformers model holds a parameter that already has another name."""
    all_names = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    return frozenset(all_names - {name for name, _ in model.named_parameters()})


def write_model(folder: Path, origin: Path, weights: Iterable[tuple[str, Tensor]]) -> None:
    """Write `weights` as a model folder like `origin`. Raises `DataError` when the disk refuses."""
    from safetensors.torch import save_file

    dtype = checkpoint_dtype(origin)
    try:
        with appearing(folder) as unfinished:
            tensors = {name: tensor.to("cpu", dtype).contiguous() for name, tensor in weights}
            save_file(tensors, unfinished / "model.safetensors", metadata={"format": "pt"})
            for file in [origin / "config.json", *(origin / name for name in _KEPT), *tokenizer_files(origin)]:
                if file.exists():
                    copy = unfinished / file.relative_to(origin)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(file, copy)
    except WRITE_ERRORS as error:
        raise DataError(
            f"cannot write the model folder {folder} ({error}); free space there, or name another"
        ) from error


@contextmanager
def appearing(folder: Path) -> Iterator[Path]:
    """An empty folder to be filled, which becomes `folder` when the block ends well, and nothing when it does not.

    One that is there is set aside first and deleted last: whenever the process is killed, one of the two is whole.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    recover(folder)
    for left in folder.parent.glob(f".{folder.name}.unfinished-*"):
        shutil.rmtree(left, ignore_errors=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}.unfinished-", dir=folder.parent))
    try:
        unfinished.chmod(0o755)
        yield unfinished
        _flush(unfinished)
        previous = folder.with_name(f".{folder.name}{_PREVIOUS}")
        if folder.exists():
            folder.rename(previous)
        unfinished.rename(folder)
        shutil.rmtree(previous, ignore_errors=True)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def recover(folder: Path) -> None:
    """Put back what a killed process had set aside and not replaced yet."""
    previous = folder.with_name(f".{folder.name}{_PREVIOUS}")
    if previous.exists() and not folder.exists():
        previous.rename(folder)
    shutil.rmtree(previous, ignore_errors=True)


def _flush(folder: Path) -> None:
    """Have the files on the disk before their folder gets its name: a power cut must not leave empty ones."""
    for file in folder.rglob("*"):
        if file.is_file():
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
