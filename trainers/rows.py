"""A row: one call of the learner, in tokens, as it is trained on.

In: the exact ids that an engine read and sampled. Out: rows that the learner scores. Text is never tokenised again.
"""

from __future__ import annotations

from typing import NamedTuple


class TokenRow(NamedTuple):
    """What was read, and what was sampled after it."""

    prompt_ids: tuple[int, ...]
    """The prompt, BOS included where the model has one."""
    ids: tuple[int, ...]
    """All sampled ids, the end token included when it was sampled."""
