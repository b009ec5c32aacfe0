"""One text of one transformers model, led from outside token by token.

In: token ids. Out: log-probabilities of the next token. Keys and values are kept between steps, and mask and positions
are those of the text's own tokens: one row has no padding. Imports torch: import this module where an engine has
started. Left out on purpose: batching of texts, sampling.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from collabsim.errors import CallError
from collabsim.models.engines import kv_cache

if TYPE_CHECKING:
    from collabsim.models.engines.logits import Logprobs


class TorchSession:
    """See `logits.LogitSession`. `turn` is held during each forward pass: engines on a CPU take turns."""

    def __init__(self, model: Any, prompt_ids: Sequence[int], turn: AbstractContextManager[Any]) -> None:
        self._model = model
        self._waiting = list(prompt_ids)
        self._turn = turn
        self._known = 0
        self._cache = kv_cache.new_cache(model.config.get_text_config().num_hidden_layers)
        named = inspect.signature(model.forward).parameters
        self._last_only = {"logits_to_keep": 1} if "logits_to_keep" in named else {}

    def step(self, ids: Sequence[int]) -> Logprobs:
        """Append `ids` to the text; log-probabilities of what follows, [size]. Raises `CallError` when the model fails."""
        new, self._waiting = [*self._waiting, *ids], []
        if not new:
            raise CallError("expected a prompt of at least one token, got none; give the seat a message")
        try:
            with self._turn, torch.inference_mode():
                logprobs = self._forward(new)
        except Exception as error:
            raise CallError(f"the model failed: {type(error).__name__}: {error}") from error
        if not np.isfinite(logprobs.max()):
            raise CallError("the model gave logits that are not numbers; check its weights, or try dtype float32")
        return logprobs

    def _forward(self, new: list[int]) -> Logprobs:
        device = self._model.device
        end = self._known + len(new)
        output = self._model(
            input_ids=torch.tensor([new], device=device),
            attention_mask=torch.ones(1, end, dtype=torch.bool, device=device),
            position_ids=torch.arange(self._known, end, device=device).unsqueeze(0),
            past_key_values=self._cache,
            use_cache=True,
            **self._last_only,
        )
        self._known = end
        logprobs: Logprobs = torch.log_softmax(output.logits[0, -1].float().cpu().double(), -1).numpy()
        return logprobs
