"""Baselines without a reward: golds (`sft`), and the learner's own right answers (`rft`).

In: items with golds, or groups of own answers. Out: rows that the same update trains, each with advantage 1: the gradient
of the likelihood. Left out on purpose: anything about systems; both train the model as it stands alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from collabsim.errors import ConfigError, DataError
from collabsim.item import Item
from collabsim.pool import Seat

from .advantages import Estimator
from .losses import Loss
from .policy.token_row import TokenRow
from .records import Example, Group, Row

if TYPE_CHECKING:
    from collabsim.models import Prompter

LIKELIHOOD = Loss("likelihood", Estimator("none"), clipped=False, cap=None)
"""With advantage 1 its gradient is that of -log p: no ratio, no importance weight."""
RIGHT = 1 - 1e-9
"""Score from which an answer is right."""


def right_rows(groups: Sequence[Group]) -> list[Example]:
    """The right answers among the learner's own, each distinct one once per group (rejection sampling; Yuan et al. 2023)."""
    rows = []
    for group in groups:
        right = [row for run in group.runs if run.reward is not None and run.reward >= RIGHT for row in run.rows]
        distinct = {row.tokens: row for row in right}
        rows += [Example(row, 1.0, 1.0, group.id.item) for row in distinct.values()]
    return rows


def gold_rows(seat: Seat, items: Sequence[Item], prompt: str | None = None) -> dict[str, Example]:
    """A row for the gold of each item, by item id, in the form that the prompt asks for, or bare when it asks for none;
    golds that do not score 1 have none.

    `prompt`: the task's own template, where it has one. Raises `ConfigError` for a seat without a local model, `DataError`
    when no gold is left.
    """
    prompter: Prompter | None = getattr(seat.model, "prompter", None)
    if prompter is None:
        raise ConfigError(
            f"objective sft: seat {seat.name!r} has no local model; its tokenizer is needed for the golds"
        )
    rows = {}
    for item in items:
        forms = item.scorer.written_forms(item.gold_text, prompt)
        text = next((text for text in forms if (item.score(text).score or 0.0) >= RIGHT), None)
        if text is None:
            continue
        ids = _ended(prompter, text)
        prompt_ids = prompter.render(seat.persona + item.view.messages, seat.sampling.template)
        row = Row(TokenRow(prompt_ids, ids), (0.0,) * len(ids), seat.sampling.temperature, "gold", 0, "stop")
        rows[item.id] = Example(row, 1.0, 1.0, item.id)
    if not rows:
        raise DataError(f"objective sft: none of {len(items)} golds scores 1 as a reply; use another objective")
    return rows


def _ended(prompter: Prompter, text: str) -> tuple[int, ...]:
    """The ids of a reply, with what ends it: a stop string of the format, or the end token."""
    tokenizer: Any = prompter.tokenizer
    if prompter.stop:
        return tuple(tokenizer.encode(text + prompter.stop[0], add_special_tokens=False))
    if tokenizer.eos_token_id is None:
        raise ConfigError("objective sft: this model's tokenizer has no end token; use another objective")
    return (*tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id)
