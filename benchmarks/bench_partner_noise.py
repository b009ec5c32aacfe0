"""Gradient variance of one step under crossed, shared and independent partner noise, on a real vote.

Every mode makes G samples of the learner for an item; what a partner generation costs is counted by the store. The variance
is that of the parameter gradient over visits of the items, along the mean gradient (the signal) and across it, summed over
directions. Recorded beside the partner generations of a step.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from needed import how_to_get

pytest.importorskip("torch", reason=how_to_get(["torch"]))
sys.path.append(str(Path(__file__).parents[1] / "tests" / "trainers"))

import torch
from collabsim.trainers.losses import loss_named
from collabsim.trainers.objectives import parse_objective
from collabsim.trainers.partner_noise import Noise
from collabsim.trainers.records import Visit
from collabsim.trainers.rollouts import RolloutPlan, collect
from recording import record
from scripted import Scripted
from tabular import Noisy, Tabular
from test_losses import gradient_of

from collabsim import Sampling, Seat, System, make_item

ITEM = make_item("What is 2 + 3?", "5")
WORDS = ["Answer: 5", "Answer: 4"]
GROUP, DRAWS, VISITS = 8, 4, 100


def measured(noise: Noise) -> dict[str, float]:
    """Variance of the gradient along and across its mean, and partner generations per group."""
    pool: dict[str, Any] = {"me": Seat("me", Scripted("me", "x"), sampling=Sampling(temperature=1.0, max_tokens=2))}
    pool |= {f"p{k}": Noisy(f"p{k}", {"Answer: 5": 0.6, "Answer: 4": 0.4}) for k in range(2)}
    model = Tabular(WORDS, seed=1)
    plan = RolloutPlan("me", parse_objective("system"), GROUP, noise, DRAWS)
    visits = [Visit(ITEM, number) for number in range(VISITS)]
    groups = asyncio.run(collect(System("majority_vote", pool), model, visits, plan))
    gradients = torch.stack(
        [gradient_of(model, [group], loss_named("rloo"), divisor=GROUP).flatten() for group in groups]
    )
    mean = gradients.mean(0)
    signal = mean / mean.norm()
    spread = gradients - mean
    along = (spread @ signal).square().mean()
    return {
        "mean": float(mean.norm()),
        "along": float(along),
        "across": float(spread.square().sum(1).mean() - along),
        "partner generations": sum(group.counts.partner_generations for group in groups) / VISITS,
    }


@pytest.mark.slow
def test_crossed_partner_noise_has_the_least_variance_and_unbiased_gradients():
    found = {noise: measured(noise) for noise in ("crossed", "shared", "independent")}
    record_table(found)
    crossed, shared, independent = found.values()
    for other in (shared, independent):
        assert crossed["along"] < other["along"]
        assert crossed["along"] + crossed["across"] < other["along"] + other["across"]
        # the same gradient, within four standard errors of its length
        error = 4 * ((crossed["along"] + other["along"]) / VISITS) ** 0.5
        assert abs(crossed["mean"] - other["mean"]) < error
    assert crossed["partner generations"] == 2 * DRAWS
    assert independent["partner generations"] == 2 * GROUP


def record_table(found: dict[Noise, dict[str, float]]) -> None:
    """The figures of every mode, and those of `independent` as the unit."""
    unit = found["independent"]
    rows = []
    for noise, row in found.items():
        variances = [f"{row[name]:.5f} ({row[name] / unit[name]:.2f})" for name in ("along", "across")]
        rows.append([noise, f"{row['mean']:.4f}", *variances, f"{row['partner generations']:g}"])
    record(
        "partner_noise",
        "Variance of a step's gradient by partner noise",
        [
            "partner noise",
            "length of the mean gradient",
            "variance along it",
            "variance across it",
            "partner generations",
        ],
        rows,
        f"One item, {VISITS} visits, a group of {GROUP} runs: a learner and two partners who are right with probability 0.6 "
        f"vote; `crossed` scores each sample of the learner against {DRAWS} stored draws of the partners. Gradients of RLOO "
        "per visit; in brackets the variance as a share of that under `independent`. Generations are per group.",
    )
