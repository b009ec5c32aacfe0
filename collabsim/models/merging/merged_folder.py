"""A merged model as a Hugging Face folder in the cache.

In: member folders, a base folder, a `MergeRecipe`. Out: a folder that any engine loads, made once for each content, in one
step (a killed merge leaves nothing behind that is taken for a model). Its identity is known before it is made. All members
are in memory while it is made. Left out on purpose: quantised weights, sharded merging of models larger than memory.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from collabsim.errors import CollabsimError, ConfigError, PrerequisiteError
from collabsim.models.merging.merge_recipe import MergeRecipe
from collabsim.models.weights.cache import cache_folder, make_once
from collabsim.models.weights.folder import ModelFolder, tokenizer_files
from collabsim.models.weights.loading_lock import loading_transformers
from collabsim.optional_packages import first_line, require
from collabsim.seeds import digest

KEPT = 32
"""Merges that stay on the disk; of older ones the least recently used go first. They can all be made again."""
_WIDTHS = ("float64", "float32", "bfloat16", "float16")
_log = logging.getLogger(__name__)
_Shapes = Mapping[str, tuple[int, ...]]


def planned_merge(members: Sequence[ModelFolder], base: ModelFolder, recipe: MergeRecipe) -> ModelFolder:
    """What `merge` will make, or has made: path and identity follow from the recipe and what goes in. Loads nothing.

    Tokenizer and template are the members' own where they agree, else those of the base.
    """
    speaker = _speaker(members, base)
    contents = sorted(member.identity for member in members)
    identity = digest(["merge", recipe.as_json(), base.identity, speaker.tokenizer, contents])
    return ModelFolder(
        path=_merges() / identity[:32],
        identity=identity,
        name=f"{recipe.method} of {len(members)} models",
        tokenizer=speaker.tokenizer,
        has_template=speaker.has_template,
        window=base.window,
        dtype=min((folder.dtype for folder in (*members, base)), key=_width),
    )


def merge(members: Sequence[ModelFolder], base: ModelFolder, recipe: MergeRecipe) -> ModelFolder:
    """The merged model, made now or before. Takes seconds to minutes the first time.

    Raises `ConfigError` for models of different shapes or vocabularies, `PrerequisiteError` for a missing package or for
    want of memory or disk space.
    """
    planned = planned_merge(members, base, recipe)
    for package in ("torch", "transformers", "peft"):
        require(package, f"merging {len(members)} models")
    make_once(planned.path, lambda folder: _fill(folder, members, base, recipe, planned.dtype))
    planned.path.touch()  # used now: see `KEPT`
    _drop_old(planned.path)
    return planned


def _merges() -> Path:
    return cache_folder() / "merges"


def _drop_old(current: Path) -> None:
    made = [path for path in _merges().iterdir() if path.is_dir() and not path.name.startswith(".") and path != current]
    made.sort(key=lambda path: path.stat().st_mtime if path.exists() else 0.0)
    for path in made[: max(len(made) + 1 - KEPT, 0)]:
        shutil.rmtree(path, ignore_errors=True)


def _width(dtype: str) -> int:
    return _WIDTHS.index(dtype) if dtype in _WIDTHS else len(_WIDTHS)


def _speaker(members: Sequence[ModelFolder], base: ModelFolder) -> ModelFolder:
    """Whose tokenizer and template the merged model has."""
    first = min(members, key=lambda member: member.identity)
    return first if all(member.tokenizer == first.tokenizer for member in members) else base


def _fill(folder: Path, members: Sequence[ModelFolder], base: ModelFolder, recipe: MergeRecipe, dtype: str) -> None:
    from collabsim.models.merging.tensors import merge_tensor, storages

    _check_vocabularies(members, base)
    _log.warning("merging %d models by %s, once", len(members), recipe.method)
    try:
        model = _load(base, dtype)
        others = [(member, storages(_load(member, dtype))) for member in members]
        targets = storages(model)
        for member, tensors in others:
            _check_shapes(_shapes(targets), _shapes(tensors), base, member)
        for name, target in targets.items():
            target.data = merge_tensor(
                name, target.data, [(member.identity, tensors[name].data) for member, tensors in others], recipe
            )
        with loading_transformers():
            model.tie_weights()  # which does nothing while another thread loads a model
            model.save_pretrained(folder)
    except MemoryError as error:
        raise PrerequisiteError(
            f"merging {len(members)} models needs memory for all of them and their base at once; use smaller models"
        ) from error
    for file in _speaking_files(_speaker(members, base).path):
        target_file = folder / file.relative_to(_speaker(members, base).path)
        target_file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target_file)


def _speaking_files(path: Path) -> list[Path]:
    """Tokenizer, template, and the settings that say which tokens end a reply."""
    settings = path / "generation_config.json"
    return [*tokenizer_files(path), *([settings] if settings.exists() else [])]


def _load(folder: ModelFolder, dtype: str) -> Any:
    from collabsim.models.weights.torch_loading import load

    return load(folder.path, dtype if dtype in _WIDTHS[1:] else "float32", "cpu").model


def check_alike(members: Sequence[ModelFolder], base: ModelFolder) -> None:
    """What `merge` checks of its members, from their configs and tokenizers alone: no weights are read.

    Raises `ConfigError` for models of different shapes or vocabularies, `PrerequisiteError` for a missing package and for
    a folder whose config cannot be read.
    """
    _check_vocabularies(members, base)
    expected = _planned_shapes(base)
    for member in members:
        _check_shapes(expected, _planned_shapes(member), base, member)


def _planned_shapes(folder: ModelFolder) -> dict[str, tuple[int, ...]]:
    """The shapes that the config of a model announces."""
    require("torch", f"the architecture of {folder.name}")
    transformers = require("transformers", f"the architecture of {folder.name}")
    import torch

    try:
        config = transformers.AutoConfig.from_pretrained(str(folder.path), local_files_only=True)
        with torch.device("meta"), loading_transformers():
            return _shapes(dict(transformers.AutoModelForCausalLM.from_config(config).named_parameters()))
    except Exception as error:
        raise PrerequisiteError(f"the config in {folder.path} cannot be read ({first_line(error)})") from error


def _shapes(tensors: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def _check_shapes(shapes: _Shapes, own: _Shapes, base_folder: ModelFolder, folder: ModelFolder) -> None:
    if shapes != own:
        name = min(set(shapes.items()) ^ set(own.items()))[0]
        raise ConfigError(
            f"expected models of one architecture, but {name} is {shapes.get(name, 'missing')} in {base_folder.name} and "
            f"{own.get(name, 'missing')} in {folder.name}; merge fine-tunes of one base only"
        )


def _check_vocabularies(members: Sequence[ModelFolder], base: ModelFolder) -> None:
    """The rows of the embeddings must mean the same tokens."""
    expected = token_table(base)
    for member in members:
        if member.tokenizer != base.tokenizer and (tokens := token_table(member)) != expected:
            token = min(expected.items() ^ tokens.items())[0]
            raise ConfigError(
                f"expected models of one vocabulary, but token {token!r} is {expected.get(token, 'missing')} in {base.name} "
                f"and {tokens.get(token, 'missing')} in {member.name}; merge fine-tunes of one base only"
            )


def token_table(folder: ModelFolder) -> dict[str, int]:
    """Token to id, as a model's tokenizer has it. Raises `PrerequisiteError` when that cannot be loaded."""
    transformers = require("transformers", f"the tokenizer of {folder.name}")
    try:
        return dict(transformers.AutoTokenizer.from_pretrained(str(folder.path), local_files_only=True).get_vocab())
    except CollabsimError:
        raise
    except Exception as error:
        raise PrerequisiteError(f"the tokenizer in {folder.path} cannot be loaded ({first_line(error)})") from error
