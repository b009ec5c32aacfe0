from __future__ import annotations

from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models.simulated_world import ask, frequency, item, near, said

from collabsim.models.simulation.distractors import right_answer, wrong_answers
from collabsim.models.simulation.expectations import (
    aggregator_score,
    conformed,
    debate_score,
    opening,
    p_right,
    round_score,
    vote_score,
)
from collabsim.models.simulation.simulated import SimulatedModel
from collabsim.nodes.quoting import quote_all
from collabsim.request import Message, with_text
from collabsim.seeds import derive_seed

ITEM = item(difficulty=0.3)
CHOICE = item("Which is a colour?", "B", choices={"A": "north", "B": "blue", "C": "seven"}, difficulty=-0.2)
N = 1000

rates = st.floats(0, 1)
members = st.builds(
    SimulatedModel,
    skill=st.floats(-3, 3),
    conformity=rates,
    no_answer_rate=st.floats(0, 0.9),
    distractors=st.integers(1, 3),
)


def studied(**parameters) -> SimulatedModel:
    model = SimulatedModel(**parameters)
    model.study([ITEM, CHOICE])
    return model


def seed_of(member: int, seed: int, turn: int = 0) -> int:
    return derive_seed("test", member, seed, turn)


def show(messages, answers):
    said_by = [f"Answer {k}:\n> Answer: {answer}" for k, answer in enumerate(answers, 1) if answer is not None]
    return with_text(messages, "\n\n".join(said_by) + "\n\nAnswer again.") if said_by else messages


def vote(answers) -> float:
    cast = Counter(answer for answer in answers if answer is not None)
    leaders = [answer for answer, count in cast.items() if count == max(cast.values())]
    return (ITEM.gold in leaders) / len(leaders) if leaders else 0.0


@pytest.mark.parametrize("one", [ITEM, CHOICE], ids=["open", "choice"])
@pytest.mark.parametrize("silent", [0.0, 0.3])
def test_openings_are_right_as_often_as_expected(one, silent):
    model = studied(skill=0.8, no_answer_rate=silent)
    observed = frequency(lambda seed: said(ask(model, one.view.messages, seed)) == one.gold, N)
    assert near(observed, p_right(model, one), N)


def test_every_answer_comes_as_often_as_its_distribution_says():
    model = studied(skill=0.0, no_answer_rate=0.2)
    observed = Counter(said(ask(model, ITEM.view.messages, seed)) for seed in range(N))
    expected = opening(model, ITEM)
    assert set(observed) == set(expected)
    assert all(near(observed[answer] / N, p, N) for answer, p in expected.items())


@pytest.mark.parametrize("shown", [("42", "9", "9"), ("42", "9"), ("9", None), (None,)])
@pytest.mark.parametrize("own", [None, "42", "13"])
def test_a_debate_turn_is_right_as_often_as_expected(shown, own):
    model = studied(skill=0.4, conformity=0.6, no_answer_rate=0.1)
    messages = ITEM.view.messages + ((Message("assistant", f"Answer: {own}"),) if own else ())
    messages = show(messages, shown)
    observed = frequency(lambda seed: said(ask(model, messages, seed)) == ITEM.gold, N)
    assert near(observed, round_score(model, ITEM, shown, own), N)


def test_a_vote_scores_as_expected():
    pool = [
        studied(skill=skill, no_answer_rate=rate) for skill, rate in ((1.0, 0.1), (0.0, 0.0), (-0.5, 0.3), (0.5, 0.0))
    ]
    total = 0.0
    for seed in range(N):
        total += vote([said(ask(model, ITEM.view.messages, seed_of(k, seed))) for k, model in enumerate(pool)])
    assert abs(total / N - vote_score(pool, ITEM)) < 4 * 0.5 / N**0.5


def test_an_aggregator_scores_as_expected():
    proposers = [studied(skill=skill, no_answer_rate=0.2) for skill in (0.6, -0.4, 0.1)]
    aggregator = studied(skill=-1.0, conformity=0.7)

    def right(seed: int) -> bool:
        replies = [ask(model, ITEM.view.messages, seed_of(k, seed)) for k, model in enumerate(proposers)]
        spoke = [reply for reply in replies if said(reply) is not None]
        messages = with_text(ITEM.view.messages, quote_all(spoke))
        return bool(spoke) and said(ask(aggregator, messages, seed_of(9, seed))) == ITEM.gold

    assert near(frequency(right, N), aggregator_score(aggregator, ITEM, proposers), N)


def test_a_round_of_debate_and_a_vote_score_as_expected():
    pool = [
        studied(skill=0.5, conformity=0.5),
        studied(skill=-0.5, conformity=0.9),
        studied(skill=1.0, no_answer_rate=0.2),
    ]
    total = 0.0
    for seed in range(N):
        first = [said(ask(model, ITEM.view.messages, seed_of(k, seed))) for k, model in enumerate(pool)]
        second = []
        for k, model in enumerate(pool):
            others = first[:k] + first[k + 1 :]
            if not any(others):
                second.append(first[k])
                continue
            own = (Message("assistant", f"Answer: {first[k]}"),) if first[k] else ()
            messages = show(ITEM.view.messages + own, others)
            second.append(said(ask(model, messages, seed_of(k, seed, 1))))
        total += vote(second)
    assert abs(total / N - debate_score(pool, ITEM)) < 4 * 0.5 / N**0.5


def test_a_vote_of_two_has_its_textbook_value():
    model = SimulatedModel(skill=0.3)  # p = 1/2 on this item, four distractors
    wrong_pair = 0.5 * 0.5
    one_right = 2 * 0.5 * 0.5
    assert p_right(model, ITEM) == pytest.approx(0.5)
    assert vote_score([model, model], ITEM) == pytest.approx(0.25 + one_right / 2 + 0 * wrong_pair)


def test_a_vote_of_one_is_individual_strength():
    model = SimulatedModel(skill=1.1, no_answer_rate=0.25)
    assert vote_score([model], ITEM) == pytest.approx(p_right(model, ITEM))
    assert debate_score([model], ITEM) == pytest.approx(p_right(model, ITEM))


def test_nobody_scores_nothing():
    assert vote_score([], ITEM) == 0.0


@given(members)
@settings(deadline=None)
def test_distributions_sum_to_one(model):
    for spread in (opening(model, ITEM), conformed(model, ITEM, ["42", "1", "1", None], "13")):
        assert sum(spread.values()) == pytest.approx(1)
        assert min(spread.values()) >= 0


@given(st.lists(members, min_size=1, max_size=4))
@settings(max_examples=25, deadline=None)
def test_a_vote_equals_the_sum_over_all_joint_answers(pool):
    total = 0.0
    for joint in product(*(opening(model, ITEM).items() for model in pool)):
        weight = 1.0
        for _, p in joint:
            weight *= p
        total += weight * vote([answer for answer, _ in joint])
    assert vote_score(pool, ITEM) == pytest.approx(total)


@given(st.lists(members, min_size=2, max_size=4), st.randoms())
@settings(max_examples=25, deadline=None)
def test_a_vote_does_not_depend_on_the_order_of_its_members(pool, random):
    shuffled = random.sample(pool, len(pool))
    assert vote_score(shuffled, ITEM) == pytest.approx(vote_score(pool, ITEM))


@given(st.lists(members, min_size=1, max_size=3), st.floats(-3, 3))
@settings(max_examples=25, deadline=None)
def test_an_aggregator_that_always_conforms_is_a_vote(pool, skill):
    aggregator = SimulatedModel(skill=skill, conformity=1.0)
    assert aggregator_score(aggregator, ITEM, pool) == pytest.approx(vote_score(pool, ITEM))


@given(members, members)
@settings(max_examples=25, deadline=None)
def test_without_conformity_and_silence_a_debate_is_a_vote(a, b):
    pool = [model.model_copy(update={"conformity": 0.0, "no_answer_rate": 0.0}) for model in (a, b)]
    assert debate_score(pool, ITEM) == pytest.approx(vote_score(pool, ITEM))


def test_wrong_answers_coincide_between_members():
    model = SimulatedModel(skill=-60.0, distractors=1)
    only = wrong_answers(ITEM, 1)[0]
    assert opening(model, ITEM)[only] == pytest.approx(1.0)
    assert right_answer(ITEM) not in wrong_answers(ITEM, 16)
