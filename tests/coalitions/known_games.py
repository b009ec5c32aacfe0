"""Populations of items with known values: finitely many item types, each with its outcome under every coalition.

A study draws items by type, so population values are exact sums over types and repeats cost only an index.
"""

from dataclasses import dataclass

import numpy as np

from collabsim.coalitions import values


@dataclass(frozen=True)
class Population:
    share: np.ndarray
    """[T], sums to 1."""
    outcomes: np.ndarray
    """[T, 2**n]."""

    @property
    def n(self):
        return self.outcomes.shape[1].bit_length() - 1

    @property
    def alone(self):
        return self.outcomes[:, 1 << np.arange(self.n)]

    def draw(self, rng, shape):
        return rng.choice(len(self.share), size=shape, p=self.share)


def members_of_masks(n):
    return (np.arange(2**n)[:, None] >> np.arange(n)) & 1


def answers(skills, levels=(-1.0, 0.0, 1.5)):
    """Who is right, by item type: difficulty level x pattern; returns share [T] and right [T, n]."""
    patterns = members_of_masks(len(skills))
    shares = []
    for level in levels:
        chance = 1 / (1 + np.exp(level - np.asarray(skills, float)))
        shares.append(np.where(patterns == 1, chance, 1 - chance).prod(axis=1) / len(levels))
    return np.concatenate(shares), np.concatenate([patterns] * len(levels))


def count_votes(right, present):
    """Share of a plurality of right against wrong voices, ties split; nobody scores 0."""
    yes, no = (right * present).sum(axis=-1), ((1 - right) * present).sum(axis=-1)
    return np.where(yes > no, 1.0, np.where((yes == no) & (yes > 0), 0.5, 0.0))


def vote(skills):
    share, right = answers(skills)
    return Population(share, count_votes(right[:, None, :], members_of_masks(len(skills))[None]))


def judge(skills):
    """Half of the items: the judge finds a right answer if there is one; other half: it picks a member blindly."""
    share, right = answers(skills)
    present = members_of_masks(len(skills))
    found, size = right @ present.T, np.maximum(present.sum(axis=1), 1)
    return Population(np.tile(share, 2) / 2, np.concatenate([(found > 0) * 1.0, found / size]))


def cascade(skills, confident):
    """The first present member that is confident answers, else the last present one."""
    share, right = answers(skills)
    rng = np.random.default_rng(3)
    sure = rng.random(right.shape) < confident
    outcomes = np.zeros((len(share), 2 ** len(skills)))
    for mask in range(1, 2 ** len(skills)):
        present = [i for i in range(len(skills)) if mask >> i & 1]
        speaker = np.full(len(share), present[-1])
        for i in reversed(present):
            speaker = np.where(sure[:, i], i, speaker)
        outcomes[:, mask] = right[np.arange(len(share)), speaker]
    return Population(share, outcomes)


def debate(skills):
    """One round: some members take the majority's view of the others who are there, then all vote."""
    share, right = answers(skills)
    yields = np.random.default_rng(4).random(right.shape) < 0.5
    present = members_of_masks(len(skills))[None]
    voices = (2 * right[:, None, :] - 1) * present
    others = voices.sum(axis=-1, keepdims=True) - voices
    after = np.where(yields[:, None, :] & (others != 0), others > 0, right[:, None, :])
    return Population(share, count_votes(after, present))


def specialists(share_of_topics, skills_by_topic, groups):
    """Any present right answer wins. Members of a group are one model: right and wrong together.

    `skills_by_topic` [topics, groups]: chance to be right; `groups` [n]: the group of each member.
    """
    patterns = members_of_masks(len(skills_by_topic[0]))
    shares, rights = [], []
    for weight, chance in zip(share_of_topics, np.asarray(skills_by_topic), strict=True):
        shares.append(weight * np.where(patterns == 1, chance, 1 - chance).prod(axis=1))
        rights.append(patterns[:, groups])
    right = np.concatenate(rights)
    return Population(np.concatenate(shares), (right @ members_of_masks(len(groups)).T > 0) * 1.0)


def chains_of(population, types, orders):
    """Outcomes along orders [..., n] for item types [...]: what `evaluate_orders` would read one by one."""
    prefixes = np.concatenate([np.zeros((*orders.shape[:-1], 1), int), np.cumsum(1 << orders, axis=-1)], axis=-1)
    return population.outcomes[types[..., None], prefixes]


def shapley_of(population):
    """Per type [T, n]."""
    return values.shapley(population.outcomes)
