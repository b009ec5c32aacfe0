"""Simulated games as whole tables, in numpy: what a sweep of simulated members would find, thousands of times faster.

In: skills, conformity, numbers of items and players, a seed. Out: outcomes [items, 2**n] under every coalition, with
the same item-response model as `collabsim.SimulatedModel`: an own answer is right with probability sigmoid(skill -
difficulty), else one of four distractors; a member that is shown others' answers adopts their plurality with its
conformity, and draws anew whether it does for every prompt. Left out: replies without an answer, choice items.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
DISTRACTORS = 4
GOLD = 0


def opening_answers(skills: Floats, items: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """[items, n]: 0 is the gold, 1 to 4 are distractors. Difficulties are standard normal."""
    difficulty = rng.normal(size=(items, 1))
    right = rng.random((items, len(skills))) < 1 / (1 + np.exp(difficulty - skills))
    return np.where(right, GOLD, rng.integers(1, DISTRACTORS + 1, size=right.shape))


def plurality_score(answers: NDArray[np.int64]) -> Floats:
    """[items]: score of a plurality vote over [items, voters]; a tie pays its expected score."""
    counts = _counts(answers)
    leads = counts == counts.max(axis=1, keepdims=True)
    return leads[:, GOLD] / leads.sum(axis=1)


def vote_game(skills: Floats, items: int, seed: int) -> Floats:
    """Outcomes [items, 2**n] of a majority vote; the empty coalition scores 0."""
    answers = opening_answers(skills, items, np.random.default_rng(seed))
    outcomes = np.zeros((items, 1 << len(skills)))
    for mask in range(1, 1 << len(skills)):
        outcomes[:, mask] = plurality_score(answers[:, _members(mask)])
    return outcomes


def debate_game(skills: Floats, conformity: Floats, items: int, seed: int) -> Floats:
    """Outcomes [items, 2**n] of a debate of two rounds, decided by a vote; a single member just answers."""
    rng = np.random.default_rng(seed)
    answers = opening_answers(skills, items, rng)
    outcomes = np.zeros((items, 1 << len(skills)))
    for mask in range(1, 1 << len(skills)):
        members = _members(mask)
        said = answers[:, members]
        outcomes[:, mask] = plurality_score(said if len(members) == 1 else _revised(said, conformity[members], rng))
    return outcomes


def _revised(said: NDArray[np.int64], conformity: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    second = said.copy()
    for k in range(said.shape[1]):
        counts = _counts(np.delete(said, k, axis=1)) + rng.random((len(said), DISTRACTORS + 1)) / 2  # ties uniformly
        conforms = rng.random(len(said)) < conformity[k]
        second[:, k] = np.where(conforms, counts.argmax(axis=1), said[:, k])
    return second


def _counts(answers: NDArray[np.int64]) -> NDArray[np.int64]:
    """[items, answers]: ballots for each answer."""
    return (answers[:, :, None] == np.arange(DISTRACTORS + 1)).sum(axis=1)


def _members(mask: int) -> list[int]:
    return [player for player in range(mask.bit_length()) if mask >> player & 1]
