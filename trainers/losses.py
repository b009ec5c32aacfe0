"""Policy-gradient losses over the learner's tokens.

In: the learner's log-probabilities of a row's sampled ids, those at the time of the rollout, those of the engine, and the
run's advantage. Out: one number to be summed over all rows of a batch and divided by a constant of the config. The
constant counts all runs, called or not: dividing by a run's own tokens is biased when the sample decides their number
(`norm: run` does so, for comparison). Left out on purpose: where rows come from, and optimisers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from collabsim.errors import ConfigError, nearest

from .advantages import Estimator

if TYPE_CHECKING:
    from torch import Tensor

Unit = Literal["call", "token"]
Norm = Literal["constant", "run"]
MOST_LOG_RATIO = 20.0
"""Log-ratios are cut here before `exp`, so that one broken token gives a large number and no infinity."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A policy-gradient loss."""

    name: str
    estimator: Estimator
    clipped: bool = True
    """Whether the ratio between the weights now and at the rollout is used and clipped (PPO); else the plain score."""
    clip: tuple[float, float] = (0.2, 0.2)
    """Largest distance of the ratio below and above 1."""
    unit: Unit = "call"
    """A ratio is that of a whole call (the product over its tokens), or of each token by itself."""
    cap: float | None = 2.0
    """Greatest weight for the difference between learner and engine (truncated importance sampling); None: no weight."""
    kl: float = 0.0
    """Weight of the KL divergence to the start. Groups that give no gradient give no KL either."""
    norm: Norm = "constant"
    """`run` divides each run by its own number of learner tokens: biased, for comparison only."""

    @property
    def biased(self) -> bool:
        """Whether its expected gradient is not that of the objective, even on fresh samples."""
        return self.norm == "run"


LOSSES = {
    "grpo": Loss("grpo", Estimator("mean", "group_std")),
    "dr_grpo": Loss("dr_grpo", Estimator("mean")),
    "rloo": Loss("rloo", Estimator("others")),
    "reinforce": Loss("reinforce", Estimator("mean"), clipped=False),
}
"""By name. GRPO: Shao et al. 2024; Dr. GRPO: Liu et al. 2025; RLOO: Ahmadian et al. 2024; `reinforce`: Williams 1992
with the mean of the group as baseline. All sum over tokens and divide by a constant, as Dr. GRPO does."""


def loss_named(name: str, **changes: object) -> Loss:
    """A loss by name with some settings changed. Raises `ConfigError` for an unknown name, naming the nearest."""
    if name not in LOSSES:
        raise ConfigError(f"train.loss: unknown loss {name!r}{nearest(name, LOSSES)}; known are {', '.join(LOSSES)}")
    return replace(LOSSES[name], **changes)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class RowLoss:
    """The loss of one row and what is logged of it."""

    value: Tensor
    """Scalar, differentiable: the sum over the row's tokens."""
    gap: float
    """Mean |learner - engine| log-probability at the rollout, nats per token."""
    weight: float
    """Mean importance weight between learner and engine."""
    clipped: bool
    """Whether clipping took the gradient of (some of) the row away."""
    kl: float
    """Mean KL estimate to the start per token; 0 without a reference."""
    nll: float
    """Mean -log p of the row's tokens, nats."""


def row_loss(
    loss: Loss,
    new: Tensor,
    sampled: Tensor,
    advantage: float,
    *,
    old: Tensor | None = None,
    reference: Tensor | None = None,
) -> RowLoss:
    """The loss of one call of the learner.

    All tensors are log-probabilities of the sampled ids, [tokens], tempered alike: `new` by the weights that learn
    (differentiable), `sampled` by the engine, `old` by the learner at the time of the rollout (None: these same weights, so
    that the ratio is 1), `reference` by the start.

    Per call: -w A min(r, clip(r)) + kl * sum of k3, with r = exp(sum of new - old) and w = min(exp(sum of old - sampled),
    cap); per token the same with a ratio and a weight for each token, summed. Clipping: Schulman et al. 2017; truncated
    importance sampling: Ionides 2008; k3: Schulman 2020, an unbiased estimate of KL(learner, start) that is never negative.
    """
    import torch

    before_T = (new if old is None else old).detach()
    drift_U, log_ratio_U = before_T - sampled, new - before_T
    if loss.unit == "call":
        drift_U, log_ratio_U = drift_U.sum(0, keepdim=True), log_ratio_U.sum(0, keepdim=True)
    weight_U = torch.ones_like(drift_U) if loss.cap is None else _exp(drift_U).clamp(max=loss.cap)
    if loss.clipped:
        ratio_U = _exp(log_ratio_U)
        clipped_ratio_U = ratio_U.clamp(1 - loss.clip[0], 1 + loss.clip[1])
        gain_U = torch.minimum(ratio_U * advantage, clipped_ratio_U * advantage)
        clipped = bool((gain_U < ratio_U * advantage).any())
    else:
        gain_U, clipped = log_ratio_U * advantage, False
    value, divergence = -(weight_U * gain_U).sum(), 0.0
    if reference is not None:
        k3_T = kl_k3(new, reference)
        value = value + loss.kl * k3_T.sum()
        divergence = float(k3_T.mean().detach())
    gap = float((before_T - sampled).abs().mean())
    return RowLoss(value, gap, float(weight_U.mean()), clipped, divergence, -float(new.detach().mean()))


def kl_k3(new: Tensor, reference: Tensor) -> Tensor:
    """Schulman's k3 estimate of KL(new, reference) for each token sampled from `new`, [tokens], never negative."""
    difference = reference - new
    return difference.clamp(max=MOST_LOG_RATIO).exp() - difference - 1


def _exp(log_ratio: Tensor) -> Tensor:
    return log_ratio.clamp(-MOST_LOG_RATIO, MOST_LOG_RATIO).exp()
