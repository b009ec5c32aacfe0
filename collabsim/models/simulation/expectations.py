"""Mean outcomes of simulated models, in closed form: the yardstick for everything that is estimated from their runs.

In: simulated models and an item. Out: probabilities and expected scores over seeds (temperature above 0, enough
`max_tokens` for the whole reply). All by exact enumeration; nothing is sampled. A right answer scores 1, all else 0.
Left out on purpose: routing, unequal ballots, more than one round.

Notation: r = no_answer_rate, c = conformity, p = chance + (1 - chance) * sigmoid(skill - difficulty).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import prod

from collabsim.item import Item
from collabsim.models.simulation.distractors import canonical_answer, right_answer, wrong_answers
from collabsim.models.simulation.simulated import SimulatedModel, plurality

Distribution = Mapping[str | None, float]
"""Probability of each answer; None is a reply without an answer. Sums to 1."""


def p_right(model: SimulatedModel, item: Item) -> float:
    """Individual strength on an item: (1 - r) * p, the probability that an opening answer is right."""
    return (1 - model.no_answer_rate) * _p_own(model, item)


def opening(model: SimulatedModel, item: Item) -> Distribution:
    """The distribution of a model's opening answer: (1 - r) p on the gold, (1 - r)(1 - p) shared by the distractors."""
    return _with_silence(model, _own(model, item))


def conformed(model: SimulatedModel, item: Item, shown: Iterable[str | None], own: str | None = None) -> Distribution:
    """The distribution of an answer given after seeing others' answers `shown` (None: no answer, not counted).

    c * (plurality of `shown`, ties uniform) + (1 - c) * (the model's `own` earlier answer, or a fresh draw without
    one); the second part alone when nobody's answer is shown. All times 1 - r.
    """
    leaders = plurality(answer for answer in shown if answer is not None)
    conformity = model.conformity if leaders else 0.0
    mixed: dict[str | None, float] = {}
    for answer in leaders:
        mixed[answer] = mixed.get(answer, 0.0) + conformity / len(leaders)
    alone: Distribution = {own: 1.0} if own is not None else _own(model, item)
    for choice, p in alone.items():
        mixed[choice] = mixed.get(choice, 0.0) + (1 - conformity) * p
    return _with_silence(model, mixed)


def round_score(model: SimulatedModel, item: Item, shown: Iterable[str | None], own: str | None = None) -> float:
    """Expected score of one debate turn: the weight of the gold in `conformed`."""
    gold = canonical_answer(right_answer(item))
    return sum(p for answer, p in conformed(model, item, shown, own).items() if _is(answer, gold))


def vote_score(members: Sequence[SimulatedModel], item: Item) -> float:
    """Expected score of a plurality vote over the opening answers of independent members.

    The sum over all vectors of ballot counts, P(counts) * [gold leads] / (number of leaders): a tie pays its expected
    score, and replies without an answer cast no ballot.
    """
    return _vote([opening(member, item) for member in members], item)


def aggregator_score(aggregator: SimulatedModel, item: Item, proposers: Sequence[SimulatedModel]) -> float:
    """Expected score of a model that is shown the opening answers of independent proposers, and has given none itself.

    (1 - r) * (sum over count vectors of P(counts) * [c * share of the gold among the leaders + (1 - c) * p]). It is
    not asked, and there is no output, when no proposer answered.
    """
    gold = canonical_answer(right_answer(item))
    p = _p_own(aggregator, item)
    c = aggregator.conformity
    answers, counts = _ballots([opening(proposer, item) for proposer in proposers])
    total = 0.0
    for ballots, weight in counts.items():
        share = _gold_share(answers, ballots, gold)
        total += 0.0 if share is None else weight * (c * share + (1 - c) * p)
    return (1 - aggregator.no_answer_rate) * total


def debate_score(members: Sequence[SimulatedModel], item: Item) -> float:
    """Expected score of one round of debate and a vote over its answers; a single member just answers.

    Every member sees its own opening answer and those of all others, then answers as in `conformed`; one that is shown
    no other answer is not asked again. Sums over all joint opening answers: (distractors + 2) ** members terms, so keep
    to four members or so.
    """
    if len(members) < 2:
        return vote_score(members, item)
    total = 0.0
    for choices in product(*(opening(member, item).items() for member in members)):
        openings = [answer for answer, _ in choices]
        second = [_revised(member, item, openings, k) for k, member in enumerate(members)]
        total += prod(p for _, p in choices) * _vote(second, item)
    return total


def _revised(member: SimulatedModel, item: Item, openings: Sequence[str | None], place: int) -> Distribution:
    others = [*openings[:place], *openings[place + 1 :]]
    if all(answer is None for answer in others):
        return {openings[place]: 1.0}
    return conformed(member, item, others, openings[place])


def _p_own(model: SimulatedModel, item: Item) -> float:
    return model.p_correct(item) if wrong_answers(item, model.distractors) else 1.0


def _own(model: SimulatedModel, item: Item) -> Distribution:
    wrong = wrong_answers(item, model.distractors)
    p = _p_own(model, item)
    return {right_answer(item): p, **dict.fromkeys(wrong, (1 - p) / max(len(wrong), 1))}


def _with_silence(model: SimulatedModel, answers: Distribution) -> Distribution:
    spoken = {answer: (1 - model.no_answer_rate) * p for answer, p in answers.items()}
    return {**spoken, None: model.no_answer_rate}


def _is(answer: str | None, gold: object) -> bool:
    return answer is not None and canonical_answer(answer) == gold


def _vote(distributions: Sequence[Distribution], item: Item) -> float:
    gold = canonical_answer(right_answer(item))
    answers, counts = _ballots(distributions)
    return sum(weight * (_gold_share(answers, ballots, gold) or 0.0) for ballots, weight in counts.items())


def _ballots(distributions: Sequence[Distribution]) -> tuple[list[object], dict[tuple[int, ...], float]]:
    """All answers, and the probability of each vector of their counts: one convolution per independent voter."""
    answers = list({canonical_answer(answer): 0 for spread in distributions for answer in spread if answer is not None})
    places = {answer: k for k, answer in enumerate(answers)}
    counts: dict[tuple[int, ...], float] = {(0,) * len(answers): 1.0}
    for spread in distributions:
        following: dict[tuple[int, ...], float] = {}
        for ballots, weight in counts.items():
            for answer, p in spread.items():
                cast = ballots
                if answer is not None:
                    place = places[canonical_answer(answer)]
                    cast = (*ballots[:place], ballots[place] + 1, *ballots[place + 1 :])
                if p:
                    following[cast] = following.get(cast, 0.0) + weight * p
        counts = following
    return list(answers), counts


def _gold_share(answers: Sequence[object], ballots: Sequence[int], gold: object) -> float | None:
    """1 / (number of leaders) when the gold leads, 0 when it does not, None when no ballot was cast."""
    most = max(ballots, default=0)
    if most == 0:
        return None
    leaders = [answer for answer, count in zip(answers, ballots, strict=True) if count == most]
    return 1 / len(leaders) if gold in leaders else 0.0
