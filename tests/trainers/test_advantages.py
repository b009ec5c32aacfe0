"""Advantages: groups by id, missing rewards, flat groups, and which estimators ignore the level of the rewards."""

import math
import random

import pytest
from collabsim.trainers.advantages import Estimator, advantages
from hypothesis import given, settings
from hypothesis import strategies as st

from collabsim.errors import ConfigError

MEAN, RLOO, GRPO = Estimator("mean"), Estimator("others"), Estimator("mean", "group_std")
CENTRED = [MEAN, RLOO, GRPO, Estimator("mean", "batch_centred_std")]
LEVEL = [Estimator("none"), Estimator("mean", "batch_std"), Estimator("mean", keep_means=(0.3, 0.7))]
scores = st.sampled_from([0.0, 0.25, 0.5, 1.0])
batches = st.lists(st.tuples(st.sampled_from("abc"), st.one_of(st.none(), scores)), min_size=1, max_size=24)


def of(rewards, groups=None, estimator=MEAN, called=None):
    return advantages(rewards, groups or ["a"] * len(rewards), estimator, called)


def test_the_mean_of_the_group_is_the_baseline():
    assert of([1.0, 0.0, 0.0, 0.0]).values == pytest.approx([0.75, -0.25, -0.25, -0.25])


def test_leaving_oneself_out_of_the_mean_is_rloo():
    assert of([1.0, 0.0, 0.5], estimator=RLOO).values == pytest.approx([0.75, -0.75, 0.0])


def test_grpo_divides_by_the_standard_deviation_of_the_group():
    assert of([1.0, 0.0, 1.0, 0.0], estimator=GRPO).values == pytest.approx([1, -1, 1, -1])


def test_without_a_baseline_rewards_are_advantages():
    assert of([1.0, 1.0, 0.0], estimator=Estimator("none")).values == (1.0, 1.0, 0.0)


def test_groups_are_found_by_id_when_one_of_unequal_size_stands_among_them():
    found = of([1, 0, 1, 0, 0, 0, 1], ["a", "a", "a", "b", "b", "b", "b"])
    assert found.values == pytest.approx([1 / 3, -2 / 3, 1 / 3, -0.25, -0.25, -0.25, 0.75])


def test_groups_are_found_by_id_when_their_runs_alternate():
    assert of([1, 0, 0, 0], ["a", "b", "a", "b"]).values == (0.5, None, -0.5, None)


@pytest.mark.parametrize("missing", [None, math.nan])
def test_a_missing_reward_is_left_out_before_the_baseline(missing):
    found = of([1.0, missing, 0.0, 0.0])
    assert found.values[1] is None
    assert [found.values[k] for k in (0, 2, 3)] == pytest.approx([2 / 3, -1 / 3, -1 / 3])
    assert found.missing == 1


def test_a_missing_reward_among_failures_makes_nothing_good():
    assert of([None, 0.0, 0.0]).values == (None, None, None)


def test_a_group_of_one_is_skipped_and_counted():
    found = of([1.0], estimator=GRPO)
    assert (found.values, found.small, found.informative) == ((None,), 1, 0)


def test_a_group_with_one_reward_left_is_skipped():
    assert of([1.0, None, None]).small == 1


def test_an_equal_group_is_skipped_and_counted():
    found = of([1.0, 1.0, 0.0, 1.0], ["a", "a", "b", "b"])
    assert (found.values[:2], found.flat, found.informative) == ((None, None), 1, 1)


def test_a_run_that_never_called_the_learner_counts_in_the_baseline_and_has_no_advantage():
    found = of([1.0, 0.0, 0.0], called=[True, False, True])
    assert found.values == (pytest.approx(2 / 3), None, pytest.approx(-1 / 3))
    assert found.uncalled == 1


def test_a_group_in_which_one_run_called_the_learner_is_skipped():
    assert of([1.0, 0.0, 0.0], called=[True, False, False]).small == 1


def test_the_filter_by_difficulty_keeps_groups_between_its_limits():
    found = of([1, 1, 1, 0, 1, 0], [*"aaaabb"], Estimator("mean", keep_means=(0.3, 0.7)))
    assert found.filtered == 1
    assert found.values[4:] == (0.5, -0.5)


def test_lengths_that_differ_are_refused():
    with pytest.raises(ConfigError, match="one group id"):
        advantages([1.0], ["a", "b"], MEAN)


@settings(deadline=None)  # the machine is shared
@given(batches, st.sampled_from(CENTRED + LEVEL), st.randoms(use_true_random=False))
def test_the_order_of_runs_means_nothing(batch, estimator, shuffler):
    order = list(range(len(batch)))
    shuffler.shuffle(order)
    plain = of([reward for _, reward in batch], [group for group, _ in batch], estimator)
    mixed = of([batch[k][1] for k in order], [batch[k][0] for k in order], estimator)
    assert [mixed.values[place] for place in range(len(order))] == [
        pytest.approx(plain.values[k]) if plain.values[k] is not None else None for k in order
    ]


@settings(deadline=None)  # the machine is shared
@given(batches, st.sampled_from(CENTRED), st.randoms(use_true_random=False))
def test_a_constant_added_to_each_group_changes_nothing_for_centred_estimators(batch, estimator, shuffler):
    assert estimator.ignores_level
    level = {group: shuffler.choice([-0.5, 0.25, 2.0]) for group in "abc"}
    groups = [group for group, _ in batch]
    plain = of([reward for _, reward in batch], groups, estimator)
    moved = of([None if reward is None else reward + level[group] for group, reward in batch], groups, estimator)
    assert moved.values == pytest.approx(plain.values, abs=1e-9)


@pytest.mark.parametrize("estimator", LEVEL)
def test_estimators_that_feel_the_level_say_so_and_do(estimator):
    assert not estimator.ignores_level
    groups = [*"aaabbb"]
    plain = of([1.0, 0.0, 0.5, 0.0, 0.0, 0.25], groups, estimator).values
    moved = of([1.4, 0.4, 0.9, 0.5, 0.5, 0.75], groups, estimator).values
    assert moved != pytest.approx(plain, abs=1e-3)


@settings(deadline=None)  # the machine is shared
@given(batches)
def test_advantages_of_a_group_sum_to_zero(batch):
    found = of([reward for _, reward in batch], [group for group, _ in batch], GRPO)
    for wanted in "abc":
        values = [value or 0.0 for value, (group, _) in zip(found.values, batch, strict=True) if group == wanted]
        assert sum(values) == pytest.approx(0.0, abs=1e-9)


def test_rloo_is_the_mean_centred_advantage_times_n_over_n_minus_one():
    generator = random.Random(3)
    rewards = [generator.random() for _ in range(7)]
    assert of(rewards, estimator=RLOO).values == pytest.approx([7 / 6 * value for value in of(rewards).values])
