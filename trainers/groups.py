"""Groups of runs, assembled from rollouts for the trainer.

In: the runs that were made for one visit of an item. Out: a `Group` of G `Run`s with rewards and rows, and counts. A
failed run has no reward. Under crossed partner noise a reward is the mean over the partner draws that every sample met: a
draw that failed for some is left out for all, or their baseline would not be one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from collabsim.episode import Call, Reply
from collabsim.errors import ConfigError
from collabsim.item import Item

from .records import Counts, Outcome, Run


def assemble(outcomes: Sequence[Outcome], size: int, baseline: Mapping[int, float | None]) -> tuple[Run, ...]:
    """The `size` runs of a group from all runs of the system that were made for it.

    `baseline`: partner draw to the value subtracted from its outcomes; None where that run failed. Raises `ConfigError` when
    the learner read other prompts under other partner draws: then one sample of it cannot be scored against all of them.
    """
    outcomes_GK: list[list[Outcome]] = [[] for _ in range(size)]
    for outcome in outcomes:
        outcomes_GK[outcome.sample].append(outcome)
    for outcomes_K in outcomes_GK:
        if len({tuple(row.tokens for row in one.rows) for one in outcomes_K if one.value is not None}) > 1:
            raise ConfigError(
                "train.partner_noise: crossed needs a learner whose prompts do not depend on its partners, and it read "
                "several under several partner draws; set partner_noise: shared"
            )
    rewards_G = _rewards(outcomes_GK, baseline)
    return tuple(_run(outcomes_K, reward) for outcomes_K, reward in zip(outcomes_GK, rewards_G, strict=True))


def _rewards(outcomes_GK: Sequence[Sequence[Outcome]], baseline: Mapping[int, float | None]) -> list[float | None]:
    values_GK = [{one.draw: one.value - base for one in outcomes_K if one.value is not None
               and (base := baseline[one.draw]) is not None} for outcomes_K in outcomes_GK]  # fmt: skip
    crossed = max(map(len, outcomes_GK), default=0) > 1
    if crossed and any(values_GK):
        common = set.intersection(*(set(values_K) for values_K in values_GK if values_K))
        values_GK = [
            {draw: values_K[draw] for draw in sorted(common)} if values_K else values_K for values_K in values_GK
        ]
    return [fmean(values_K.values()) if values_K else None for values_K in values_GK]


def _run(outcomes_K: Sequence[Outcome], reward: float | None) -> Run:
    first = next((one for one in outcomes_K if one.value is not None), outcomes_K[0])
    error = next((one.error for one in outcomes_K if one.error is not None), None)
    return Run(reward, first.rows if reward is not None else (), error)


def cost(calls: Iterable[Call], learner: str) -> Counts:
    """Costs of the calls of one run, the learner's and its partners' apart."""
    total = dict.fromkeys(
        ("learner_calls", "learner_tokens", "partner_calls", "partner_generations", "partner_tokens"), 0
    )
    for call in calls:
        fresh, written = not call.reused, call.usage.completion_tokens
        if call.seat == learner:
            total["learner_calls"] += fresh  # a sample scored against several partner draws is one call
            total["learner_tokens"] += written * fresh
        else:
            total["partner_calls"] += 1
            total["partner_generations"] += fresh
            total["partner_tokens"] += written * fresh
    return Counts(**total)


def outvoted(item: Item, own: Reply, final: Sequence[tuple[str, float, str]]) -> bool:
    """Whether the final output holds nothing that is equal to the learner's own answer."""
    answer = item.answers.extract(own.text, own.finish)
    others = [item.answers.extract(text, finish) for text, _, finish in final]
    if answer is None:
        return True
    classes = item.answers.group([answer, *(other for other in others if other is not None)])
    return classes[0] == [0]
