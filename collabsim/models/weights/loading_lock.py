"""A lock on transformers while a model is read or written: one thread at a time, no progress bars, no advice.

In: nothing. Out: a context in which it prints nothing; its settings are put back after. collabsim itself announces in one
line what takes long. Threads wait for each other, because transformers patches its own classes while it loads a model
(`tie_weights` does nothing then): two loads that overlap lose tied weights, and can leave the patch in place for good.
Left out on purpose: errors, which are raised and not printed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from collabsim.optional_packages import require

_GGUF_READER = "transformers.modeling_gguf_pytorch_utils"
_ALONE = threading.RLock()  # an adapter is read while its base is


@contextmanager
def loading_transformers() -> Iterator[None]:
    """No progress bars and no advice from transformers, and no other thread in here.

    Raises `PrerequisiteError` when it is not installed.
    """
    with _ALONE, _settings_put_back(), _no_bar_of_gguf_reader():
        yield


@contextmanager
def _settings_put_back() -> Iterator[None]:
    words = require("transformers.utils.logging", "local models")
    level, had_bars = words.get_verbosity(), words.is_progress_bar_enabled()
    words.set_verbosity_error()
    words.disable_progress_bar()
    try:
        yield
    finally:
        words.set_verbosity(level)
        if had_bars:
            words.enable_progress_bar()


@contextmanager
def _no_bar_of_gguf_reader() -> Iterator[None]:
    """Its reader of GGUF files takes its bar from tqdm itself, past the switch of `transformers.utils.logging`."""
    reader = require(_GGUF_READER, "local models")
    bar = getattr(reader, "tqdm", None)
    if bar is None:  # mended by then
        yield
        return
    reader.tqdm = partial(bar, disable=True)
    try:
        yield
    finally:
        reader.tqdm = bar
