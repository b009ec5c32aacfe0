"""One update of the learner: turns groups of runs into gradients and a step of the optimiser.

In: groups, a loss, a learner. Out: changed weights and what is logged of the update. The sum over all rows is divided by a
constant of the config, so that micro-batches of any size add up to the same gradient. A loss or gradient that is not
finite ends the training with the name of the item; it never reaches the weights. Left out on purpose: rollouts, schedules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from collabsim.errors import TrainingError

from .advantages import Advantages, advantages
from .losses import Loss, RowLoss, row_loss
from .policy.token_row import TokenRow
from .records import Example, Group

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Parameter
    from torch.optim import Optimizer


class LogprobModel(Protocol):
    """The part of a learner that an update needs; `policy.learner.Learner` has it."""

    def token_logprobs(self, rows: Sequence[TokenRow], temperature: float) -> list[Tensor]:
        """Differentiable log-probabilities of each row's ids given its prompt ids, tempered; one tensor per row."""

    def parameters(self) -> Iterable[Parameter]:
        """The trainable weights."""


@dataclass(frozen=True, slots=True)
class UpdateStats:
    """Statistics of one update for the log; means are over tokens unless they say otherwise."""

    loss: float = 0.0
    grad_norm: float = 0.0
    """Before clipping."""
    rows: int = 0
    tokens: int = 0
    """Trained tokens."""
    gap: float = 0.0
    """|learner - engine| log-probability at the rollout, nats."""
    weight: float = 1.0
    """Importance weight between learner and engine."""
    clipped: float = 0.0
    """Share of rows whose ratio was clipped."""
    kl: float = 0.0
    """KL divergence to the start, nats; 0 without `kl`."""
    nll: float = 0.0
    """-log p of the trained tokens, nats."""


def examples(groups: Sequence[Group], loss: Loss) -> tuple[list[Example], Advantages]:
    """The rows of all runs that give a gradient, and how many do not."""
    runs = [(group, run) for group in groups for run in group.runs]
    group_advantages = advantages(
        [run.reward for _, run in runs],
        [group.id for group, _ in runs],
        loss.estimator,
        called_R=[bool(run.rows) for _, run in runs],
    )
    rows = []
    for (group, run), advantage in zip(runs, group_advantages.values, strict=True):
        if advantage is None:
            continue
        scale = 1 / sum(map(len, run.rows)) if loss.norm == "run" else 1.0
        rows += [Example(row, advantage * group.weight, scale, group.id.item) for row in run.rows]
    return rows, group_advantages


def micro_batches(rows: Sequence[Example], budget: int) -> Iterator[list[Example]]:
    """The rows in batches of one temperature, rows of like length and equal prompts together; rows times the longest stays
    within `budget` tokens (a longer row is a batch by itself)."""
    ordered = sorted(rows, key=lambda one: (one.row.temperature, _length(one), one.row.tokens, one.advantage))
    batch: list[Example] = []
    for one in ordered:
        other_kind = bool(batch) and batch[0].row.temperature != one.row.temperature
        if batch and (other_kind or (len(batch) + 1) * _length(one) > budget):
            yield batch
            batch = []
        batch.append(one)
    if batch:
        yield batch


def _length(example: Example) -> int:
    return len(example.row.tokens.prompt_ids) + len(example.row.tokens.ids)


def update(
    learner: LogprobModel,
    optimizer: Optimizer,
    rows: Sequence[Example],
    loss: Loss,
    *,
    divisor: float,
    grad_clip: float | None = 1.0,
    budget: int = 8192,
    epochs: int = 1,
    reference: LogprobModel | None = None,
) -> UpdateStats:
    """Change the weights by `epochs` steps over the rows; statistics are those of the last.

    `divisor`: a constant of the config that counts all runs. With several epochs the ratio is against the weights
    before the first. `reference`: the start, for the KL term. Without rows nothing is changed. Raises `TrainingError`
    when a loss or the gradient is not finite, before the weights are touched.
    """
    if not rows:
        return UpdateStats()
    batches = list(micro_batches(rows, budget))
    old = [_frozen(learner, batch) if epochs > 1 else None for batch in batches]
    start = [_frozen(reference, batch) if reference is not None and loss.kl else None for batch in batches]
    stats = UpdateStats()
    for _ in range(epochs):
        optimizer.zero_grad(set_to_none=True)
        losses: list[RowLoss] = []
        for batch, before, beginning in zip(batches, old, start, strict=True):
            losses += _backward(learner, batch, loss, divisor, before, beginning)
        norm = _checked_norm(learner, rows, grad_clip)
        optimizer.step()
        stats = _stats(losses, rows, batches, norm)
    return stats


def _frozen(model: LogprobModel, batch: Sequence[Example]) -> list[Tensor]:
    import torch

    with torch.no_grad():
        return model.token_logprobs([one.row.tokens for one in batch], batch[0].row.temperature)


def _backward(
    learner: LogprobModel,
    batch: Sequence[Example],
    loss: Loss,
    divisor: float,
    old: Sequence[Tensor] | None,
    reference: Sequence[Tensor] | None,
) -> list[RowLoss]:
    """Add the gradient of one micro-batch."""
    import torch

    scores = learner.token_logprobs([one.row.tokens for one in batch], batch[0].row.temperature)
    results = []
    for index, (one, new) in enumerate(zip(batch, scores, strict=True)):
        sampled = torch.tensor(one.row.logprobs, dtype=new.dtype, device=new.device)
        before = None if old is None else old[index]
        start = None if reference is None else reference[index]
        result = row_loss(loss, new, sampled, one.advantage, old=before, reference=start)
        if not torch.isfinite(result.value):
            raise TrainingError(
                f"the loss of item {one.item} is {float(result.value.detach())}: expected a finite number. Its reply begins "
                f"with the ids {list(one.row.tokens.ids[:8])}, its advantage is {one.advantage:.3g}; lower train.lr, or "
                "train in float32"
            )
        results.append(result)
    total = torch.stack([result.value * one.scale for result, one in zip(results, batch, strict=True)]).sum() / divisor
    total.backward()
    return results


def _checked_norm(learner: LogprobModel, rows: Sequence[Example], grad_clip: float | None) -> float:
    """Norm of the gradient before it is clipped. Raises `TrainingError` when it is not finite."""
    import torch

    limit = float("inf") if grad_clip is None else grad_clip
    norm = float(torch.nn.utils.clip_grad_norm_(list(learner.parameters()), limit))
    if norm != norm or norm == float("inf"):
        items = sorted({one.item for one in rows})
        raise TrainingError(
            f"the gradient over items {', '.join(items[:8])} is {norm}: expected a finite norm; "
            "lower train.lr, or train in float32"
        )
    return norm


def _stats(
    losses: Sequence[RowLoss], rows: Sequence[Example], batches: Sequence[Sequence[Example]], norm: float
) -> UpdateStats:
    ordered = [one for batch in batches for one in batch]
    tokens = sum(len(one.row) for one in rows)

    def mean(name: str) -> float:
        total = sum(getattr(result, name) * len(one.row) for result, one in zip(losses, ordered, strict=True))
        return float(total / tokens)

    return UpdateStats(
        loss=float(sum(float(result.value.detach()) for result in losses) / len(losses)),
        grad_norm=norm,
        rows=len(rows),
        tokens=tokens,
        gap=mean("gap"),
        weight=mean("weight"),
        clipped=sum(result.clipped for result in losses) / len(losses),
        kl=mean("kl"),
        nll=mean("nll"),
    )
