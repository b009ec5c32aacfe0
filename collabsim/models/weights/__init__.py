"""From a spec in a config to a local Hugging Face folder with a content identity.

In: a folder (a model, or a LoRA adapter over one), a `.gguf` file, `package://PACKAGE/path` or a hub id. Out: a
`ModelFolder`: complete, checked, converted when it had to be, and named by what is in it. The second call reads a few
small files and the times of the large ones, so a finished sweep never loads a model. Left out on purpose: engines, chat
formats, and pushing anything anywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collabsim.lazy import lazy_names

if TYPE_CHECKING:
    from collabsim.models.weights.cache import cache_folder
    from collabsim.models.weights.dtype import SHORT, computes_natively, likely_device, resolve_dtype
    from collabsim.models.weights.folder import ModelFolder, read_folder, stored_dtype, tokenizer_files
    from collabsim.models.weights.loading_lock import loading_transformers
    from collabsim.models.weights.torch_loading import Loaded, load
    from collabsim.models.weights.weight_search import find_weights

__all__ = [
    "SHORT",
    "Loaded",
    "ModelFolder",
    "cache_folder",
    "computes_natively",
    "find_weights",
    "likely_device",
    "load",
    "loading_transformers",
    "read_folder",
    "resolve_dtype",
    "stored_dtype",
    "tokenizer_files",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "cache": ("cache_folder",),
            "dtype": ("SHORT", "computes_natively", "likely_device", "resolve_dtype"),
            "weight_search": ("find_weights",),
            "folder": ("ModelFolder", "read_folder", "stored_dtype", "tokenizer_files"),
            "loading_lock": ("loading_transformers",),
            "torch_loading": ("Loaded", "load"),
        },
    )
