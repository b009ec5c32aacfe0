"""transformers without its bars and advice, for as long as we read or write a model.

In: nothing. Out: a context in which it is quiet; its settings are put back after. What takes long is said by us, in one
line. Left out on purpose: errors, which are raised and not printed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from collabsim.models.weights.packages import require

_GGUF_READER = "transformers.modeling_gguf_pytorch_utils"


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """No progress bars and no advice from transformers. Raises `PrerequisiteError` when it is not installed."""
    words = require("transformers.utils.logging", "local models")
    level, had_bars = words.get_verbosity(), words.is_progress_bar_enabled()
    words.set_verbosity_error()
    words.disable_progress_bar()
    try:
        with _no_bar_of_gguf_reader():
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
