"""LoRA adapters as whole models.

In: a folder as peft writes it (`adapter_config.json`, adapter weights). Out: a folder in the cache in which the adapter is
merged into its base model, made once for each content. So an adapter is a model like any other, on every engine. Left out
on purpose: running several adapters over one base in one engine.
"""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path

from collabsim.errors import ConfigError, DataError, PrerequisiteError
from collabsim.models.weights.cache import cache_folder, make_once, sha256_of
from collabsim.models.weights.folder import VOCABULARIES, ModelFolder, tokenizer_files
from collabsim.models.weights.loading_lock import loading_transformers
from collabsim.optional_packages import first_line, require
from collabsim.seeds import digest

SETTINGS = "adapter_config.json"
_log = logging.getLogger(__name__)


def is_adapter(folder: Path) -> bool:
    """Whether the folder holds an adapter and no model of its own."""
    return (folder / SETTINGS).exists() and not (folder / "config.json").exists()


def base_of(folder: Path) -> str:
    """The spec of the model that the adapter was made for; a relative one starts from the adapter's folder.

    Raises `DataError` for an adapter that does not say.
    """
    try:
        named = json.loads((folder / SETTINGS).read_text(encoding="utf-8")).get("base_model_name_or_path")
    except (ValueError, AttributeError) as error:
        raise DataError(f"{folder / SETTINGS}: expected a JSON object ({error}); save the adapter again") from error
    if not isinstance(named, str) or not named:
        raise DataError(f"{folder / SETTINGS}: expected `base_model_name_or_path`, got {named!r}; name the base there")
    return str(folder / named) if (folder / named).exists() else named


def applied(folder: Path, base: ModelFolder) -> Path:
    """The folder of the base with the adapter merged into it, made now or before.

    The tokenizer is the adapter's own where it brings one. Raises `PrerequisiteError` for missing packages and files,
    `ConfigError` for an adapter that does not fit the base.
    """
    weights = sorted([*folder.glob("adapter_model*.safetensors"), *folder.glob("adapter_model*.bin")])
    if not weights:
        raise PrerequisiteError(f"adapter {folder}: expected adapter_model.safetensors, got none; finish the download")
    own = [file for file in folder.iterdir() if file.name in VOCABULARIES]
    speaking = tokenizer_files(folder) if own else []
    settings = (folder / SETTINGS).read_text(encoding="utf-8")
    key = digest(["adapter", settings, [sha256_of([file]) for file in (*weights, *speaking)], base.identity])[:16]
    return make_once(
        cache_folder() / f"{folder.resolve().name}-{key}", lambda made: _fill(made, folder, base, speaking)
    )


def _fill(made: Path, folder: Path, base: ModelFolder, speaking: list[Path]) -> None:
    for package in ("torch", "transformers", "peft"):
        require(package, f"the adapter {folder.name}")
    from peft import PeftModel

    from collabsim.models.weights.torch_loading import load

    _log.warning("merging the adapter %s into %s, once", folder.name, base.name)
    model = load(base.path, base.dtype, "cpu").model
    try:
        with loading_transformers():
            whole = PeftModel.from_pretrained(model, str(folder)).merge_and_unload()
            whole.save_pretrained(made)
    except (ValueError, RuntimeError, KeyError) as error:
        raise ConfigError(
            f"the adapter {folder} does not fit {base.name} ({first_line(error)}); name its own base"
        ) from error
    for file in speaking or tokenizer_files(base.path):
        source = folder if speaking else base.path
        target = made / file.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
