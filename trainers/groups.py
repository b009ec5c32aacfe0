"""Groups: what rollouts hand to the trainer.

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

    `baseline`: partner draw to what is subtracted from its outcomes; None where that run failed. Raises `ConfigError` when
    the learner read other prompts under other partner draws: then one sample of it cannot be scored against all of them.
    """
    by_sample: list[list[Outcome]] = [[] for _ in range(size)]
    for outcome in outcomes:
        by_sample[outcome.sample].append(outcome)
    for met in by_sample:
        if len({tuple(row.tokens for row in one.rows) for one in met if one.value is not None}) > 1:
            raise ConfigError(
                "train.partner_noise: crossed needs a learner whose prompts do not depend on its partners, and it read "
                "several under several partner draws; set partner_noise: shared"
            )
    rewards = _rewards(by_sample, baseline)
    return tuple(_run(met, reward) for met, reward in zip(by_sample, rewards, strict=True))


def _rewards(by_sample: Sequence[Sequence[Outcome]], baseline: Mapping[int, float | None]) -> list[float | None]:
    values = [{one.draw: one.value - base for one in met if one.value is not None
               and (base := baseline[one.draw]) is not None} for met in by_sample]  # fmt: skip
    crossed = max(map(len, by_sample), default=0) > 1
    if crossed and any(values):
        common = set.intersection(*(set(known) for known in values if known))
        values = [{draw: known[draw] for draw in sorted(common)} if known else known for known in values]
    return [fmean(known.values()) if known else None for known in values]


def _run(met: Sequence[Outcome], reward: float | None) -> Run:
    spoken = next((one for one in met if one.value is not None), met[0])
    error = next((one.error for one in met if one.error is not None), None)
    return Run(reward, spoken.rows if reward is not None else (), error)


def cost(calls: Iterable[Call], learner: str) -> Counts:
    """What the calls of one run took, the learner's and its partners' apart."""
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
    said = item.answers.extract(own.text, own.finish)
    others = [item.answers.extract(text, finish) for text, _, finish in final]
    if said is None:
        return True
    classes = item.answers.group([said, *(answer for answer in others if answer is not None)])
    return classes[0] == [0]
