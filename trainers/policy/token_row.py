"""One sampled reply in tokens: what the learner computes log-probabilities of."""

from __future__ import annotations

from typing import NamedTuple


class TokenRow(NamedTuple):
    """One sampled reply in tokens: all of `ids` are trained, none of `prompt_ids` is."""

    prompt_ids: tuple[int, ...]
    ids: tuple[int, ...]
    """Every sampled id, the end token included when it was sampled; no padding."""
