"""Finding a model's weights: from a spec in a config to a complete local folder.

In: a spec (see `source.py`). Out: a `ModelFolder`, downloaded, joined or converted first where that is needed. Left out on
purpose: each of these steps (the modules beside this one have them).
"""

from __future__ import annotations

from collabsim.models.weights.adapter import applied, base_of, is_adapter
from collabsim.models.weights.conversion import converted
from collabsim.models.weights.folder import ModelFolder, read_folder
from collabsim.models.weights.hub import hub_folder
from collabsim.models.weights.source import locate


def find_weights(spec: str, *, revision: str | None = None, dtype: str = "bfloat16") -> ModelFolder:
    """The model folder that `spec` names, downloaded, joined or converted first where that is needed.

    `revision` is a hub model's branch, tag or commit. `dtype` (`bfloat16`, `float16`, `float32`) is the type that GGUF
    weights are converted to. A conversion takes from 15 seconds to minutes, once for each content and dtype.

    Raises `ConfigError` for a spec that cannot be meant, `PrerequisiteError` for what is not there (file, package,
    tokenizer, network) and `DataError` for files that are cut off or have another hash than the spec says.
    """
    source = locate(spec, revision=revision)
    if source.hub_id:
        return hub_folder(source.hub_id, revision)
    if source.folder is not None and is_adapter(source.folder):
        base = find_weights(base_of(source.folder), dtype=dtype)
        return read_folder(applied(source.folder, base), name=source.name)
    if source.folder is not None:
        return read_folder(source.folder, name=source.name)
    return read_folder(converted(source, dtype), name=source.name)
