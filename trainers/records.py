"""The records of training: a visit of an item, the rows of a run, the runs of a group, an example of the loss.

    Visit    an item that is trained on now
    Outcome  one run of the live system for it: its value and the learner's rows
    Row      one call of the learner, in tokens
    Run      one sample of the learner: a reward and rows, over all partner draws
    Group    G runs that differ in the learner's samples only
    Example  a row with its advantage: what the loss takes

Left out on purpose: how each is made; see `rollouts`, `rows`, `groups` and `updates`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from collabsim.episode import RunError
from collabsim.item import Item

from .objectives import Term
from .policy.token_row import TokenRow


class Visit(NamedTuple):
    """An item that is trained on now."""

    item: Item
    number: int
    """Number of earlier visits of the item."""
    attempt: int = 0
    """Number of earlier draws of its group in this visit."""


@dataclass(frozen=True, slots=True)
class Row:
    """One call of the learner."""

    tokens: TokenRow
    logprobs: tuple[float, ...]
    """Of each id under the distribution that the engine sampled it from."""
    temperature: float
    """Of that distribution; the learner's logits are divided by it."""
    revision: str
    """Version of the weights that made the reply."""
    draw: int
    finish: str

    def __len__(self) -> int:
        return len(self.tokens.ids)


class GroupId(NamedTuple):
    """The identity of a group, shared by its runs."""

    item: str
    visit: int
    attempt: int
    term: Term


@dataclass(frozen=True, slots=True)
class Run:
    """One sample of the learner in a group: one run, or one for each partner draw when crossed."""

    reward: float | None
    """Mean outcome over the partner draws (minus the value without the learner under `leave_one_out`)."""
    rows: tuple[Row, ...]
    """One for each call of the learner, in a fixed order; empty when it was never asked."""
    error: RunError | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """Costs of the runs of a group, and counts of what happened to the learner's replies."""

    runs: int = 0
    failed: int = 0
    without_learner: int = 0
    """Runs of the system without the learner: only `leave_one_out` makes any."""
    outvoted: int = 0
    """Runs whose final output is not what the learner answered itself."""
    truncated: int = 0
    """Learner replies that reached `max_tokens`."""
    learner_calls: int = 0
    learner_tokens: int = 0
    """Tokens that the learner wrote."""
    partner_calls: int = 0
    partner_generations: int = 0
    """Partner calls that the store could not serve."""
    partner_tokens: int = 0
    """Tokens written in these generations."""

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, name) + getattr(other, name) for name in Counts.__slots__))


@dataclass(frozen=True, slots=True)
class Group:
    """G runs of one item that differ in the learner's samples."""

    id: GroupId
    weight: float
    """Of its term in the objective."""
    runs: tuple[Run, ...]
    counts: Counts


class Outcome(NamedTuple):
    """One run of the system, as far as its group needs it."""

    sample: int
    draw: int
    value: float | None
    rows: tuple[Row, ...]
    error: RunError | None


@dataclass(frozen=True, slots=True)
class Example:
    """A row with all that its loss needs."""

    row: Row
    advantage: float
    """Of its run, times the weight of its term."""
    scale: float
    """1, or 1 / learner tokens of its run under `norm: run`."""
    item: str
