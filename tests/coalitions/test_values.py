from itertools import permutations
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from collabsim.coalitions import masks, values
from collabsim.errors import ConfigError, MissingOutcomesError


def tables(max_players=5, max_items=3):
    return st.tuples(st.integers(0, max_players), st.integers(1, max_items)).flatmap(
        lambda size: arrays(np.float64, (size[1], 2 ** size[0]), elements=st.floats(0, 1, width=32))
    )


def players_of(outcomes):
    return outcomes.shape[1].bit_length() - 1


def game(n, v):
    """One item: v of the set of players."""
    return np.array([[float(v(frozenset(masks.members(mask)))) for mask in masks.all_masks(n)]])


def over_all_orders(outcomes):
    n = players_of(outcomes)
    total = np.zeros((len(outcomes), n))
    for order in permutations(range(n)):
        before = 0
        for player in order:
            total[:, player] += outcomes[:, before | 1 << player] - outcomes[:, before]
            before |= 1 << player
    return total / factorial(n)


def relabel(outcomes, order):
    """The same game with player order[i] called i."""
    n = players_of(outcomes)
    return outcomes[:, [sum(1 << order[i] for i in masks.members(mask)) for mask in masks.all_masks(n)]]


@given(tables())
def test_shapley_is_the_mean_marginal_over_all_orders(outcomes):
    assert np.abs(values.shapley(outcomes) - over_all_orders(outcomes)).max(initial=0) < 1e-9


@settings(max_examples=25, deadline=None)
@given(tables(max_players=6, max_items=1).filter(lambda outcomes: outcomes.shape[1] > 1))
def test_shapley_banzhaf_and_interaction_agree_with_shapiq(outcomes):
    from shapiq import ExactComputer

    n = players_of(outcomes)
    computer = ExactComputer(lambda rows: outcomes[0, rows.astype(int) @ (1 << np.arange(n))], n_players=n)
    peer = {index: computer(index, order=2 if index == "SII" and n > 1 else 1) for index in ("SV", "BV", "SII")}
    assert np.allclose(values.shapley(outcomes)[0], [peer["SV"][(i,)] for i in range(n)], atol=1e-9)
    assert np.allclose(values.banzhaf(outcomes)[0], [peer["BV"][(i,)] for i in range(n)], atol=1e-9)
    for i in range(n):
        for j in range(i + 1, n):
            assert values.interaction(outcomes)[0, i, j] == pytest.approx(peer["SII"][(i, j)], abs=1e-9)


def test_banzhaf_weights_are_not_shapleys():
    outcomes = game(4, lambda s: 0.5 * (0 in s) + 0.4 * (len(s) >= 3))
    assert values.shapley(outcomes)[0] == pytest.approx([0.6, 0.1, 0.1, 0.1])
    assert values.banzhaf(outcomes)[0] == pytest.approx([0.65, 0.15, 0.15, 0.15])


def test_redundant_members_have_no_leave_one_out_and_share_their_shapley_value():
    outcomes = game(3, lambda s: 0.55 if s & {0, 1} else 0.25 * (2 in s))
    assert values.shapley(outcomes)[0] == pytest.approx([0.7 / 3, 0.7 / 3, 0.25 / 3])
    assert values.leave_one_out(outcomes, 3)[0] == pytest.approx([0, 0, 0])
    assert values.leave_one_out_split(outcomes, 3)[0] == pytest.approx([0.55 / 3] * 3)
    assert values.interaction(outcomes)[0, 0, 1] < 0


@given(tables())
def test_shapley_values_sum_to_the_gain_of_the_full_coalition(outcomes):
    gain = outcomes[:, -1] - outcomes[:, 0]
    assert np.abs(values.shapley(outcomes).sum(axis=1) - gain * (outcomes.shape[1] > 1)).max() < 1e-9
    if outcomes.shape[1] > 1:
        assert abs(values.efficiency_gap(values.shapley(outcomes), outcomes)) < 1e-9


@given(tables(max_players=4), st.data())
def test_a_player_that_never_matters_has_exactly_zero(outcomes, data):
    at = data.draw(st.integers(0, players_of(outcomes)))
    masks_with = list(masks.all_masks(players_of(outcomes) + 1))
    low = (1 << at) - 1
    widened = outcomes[:, [(mask & low) | (mask >> at + 1 << at) for mask in masks_with]]
    for value in (values.shapley, values.banzhaf, values.shapley_after_two):
        assert (value(widened)[:, at] == 0).all()
    assert (values.interaction(widened)[:, at] == 0).all()


@given(tables(max_players=5), st.randoms())
def test_renaming_the_players_renames_the_values(outcomes, random):
    order = list(range(players_of(outcomes)))
    random.shuffle(order)
    renamed = relabel(outcomes, order)
    for value in (values.shapley, values.banzhaf, values.shapley_after_two):
        assert np.abs(value(renamed) - value(outcomes)[:, order]).max(initial=0) < 1e-9
    swapped = values.interaction(outcomes)[:, order][:, :, order]
    assert np.abs(values.interaction(renamed) - swapped).max(initial=0) < 1e-9


@given(tables(max_players=4))
def test_players_that_can_be_exchanged_have_equal_values(outcomes):
    if players_of(outcomes) < 2:
        return
    order = [1, 0, *range(2, players_of(outcomes))]
    even = outcomes + relabel(outcomes, order)
    assert np.abs(values.shapley(even)[:, 0] - values.shapley(even)[:, 1]).max() < 1e-9


@given(tables(max_players=4, max_items=1), st.floats(-2, 2), st.floats(-2, 2), st.randoms())
def test_values_are_linear_in_the_game(outcomes, a, b, random):
    other = np.array([[random.random() for _ in range(outcomes.shape[1])]])
    n = players_of(outcomes)
    for value in (
        values.shapley,
        values.banzhaf,
        values.shapley_after_two,
        values.interaction,
        lambda table: values.leave_one_out_split(table, n),
    ):
        expected = a * value(outcomes) + b * value(other)
        assert np.abs(value(a * outcomes + b * other) - expected).max(initial=0) < 1e-9


@given(tables(max_players=5))
def test_the_three_parts_of_shapley_by_predecessors_add_up(outcomes):
    n = players_of(outcomes)
    own = values.individual(outcomes, n) - outcomes[:, :1]
    pairs = np.zeros((len(outcomes), n))
    for i in range(n):
        for j in set(range(n)) - {i}:
            pairs[:, i] += (outcomes[:, 1 << i | 1 << j] - outcomes[:, 1 << j]) / (n * (n - 1))
    rest = values.shapley_after_two(outcomes)
    assert np.abs(own / max(n, 1) + pairs + rest - values.shapley(outcomes)).max(initial=0) < 1e-9


@given(tables(max_players=5))
def test_leave_one_out_split_is_efficient(outcomes):
    n = players_of(outcomes)
    split = values.leave_one_out_split(outcomes, n)
    assert n == 0 or np.abs(split.sum(axis=1) - (outcomes[:, -1] - outcomes[:, 0])).max() < 1e-9


@given(tables(max_players=5))
def test_a_few_columns_do_where_a_few_are_needed(outcomes):
    n = players_of(outcomes)
    whole = masks.full(n)
    needed = {mask: outcomes[:, mask] for mask in (0, whole, *(masks.without(whole, i) for i in range(n)))}
    assert (values.leave_one_out_split(needed, n) == values.leave_one_out_split(outcomes, n)).all()
    assert (values.leave_one_out(needed, n) == values.leave_one_out(outcomes, n)).all()


def test_a_missing_outcome_is_an_error_that_names_the_coalition():
    outcomes = np.zeros((3, 8))
    outcomes[1, 0b101] = np.nan
    with pytest.raises(MissingOutcomesError, match=r"1 coalition.*: a\+c;"):
        values.shapley(outcomes, ("a", "b", "c"))


def test_a_missing_column_is_an_error_and_many_are_counted():
    with pytest.raises(MissingOutcomesError, match=r"1 coalition.*\(empty\)"):
        values.efficiency_gap(np.zeros((2, 1)), {1: np.ones(2)})
    with pytest.raises(MissingOutcomesError, match=r"6 coalition\(s\).*and 1 more"):
        values.leave_one_out({}, 5)


def test_values_of_missing_columns_they_do_not_need_are_given():
    outcomes = np.full((2, 8), np.nan)
    outcomes[:, [0b111, 0b110, 0b101, 0b011]] = [[1, 0, 1, 1], [1, 1, 0, 1]]
    assert values.leave_one_out(outcomes, 3).tolist() == [[1, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 0)])
def test_a_table_of_another_shape_is_refused(shape):
    with pytest.raises(ConfigError, match="2\\*\\*players"):
        values.shapley(np.zeros(shape))


def test_pools_of_nobody_and_of_one_have_values():
    nobody, one = np.array([[0.25], [0.5]]), np.array([[0.25, 1.0], [0.25, 0.0]])
    assert values.shapley(nobody).shape == (2, 0) == values.leave_one_out_split(nobody, 0).shape
    assert values.interaction(nobody).shape == (2, 0, 0)
    for value in (values.shapley, values.banzhaf):
        assert value(one).tolist() == [[0.75], [-0.25]]
    assert values.leave_one_out(one, 1).tolist() == [[0.75], [-0.25]]
    assert values.individual(one, 1).tolist() == [[1.0], [0.0]]
    assert values.interaction(one).tolist() == [[[0.0]], [[0.0]]]


def test_sixteen_players_are_computed_from_the_dense_table():
    n, m = 16, 20
    weights = np.random.default_rng(0).random((m, n))
    members = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    both = (members[:, 3] * members[:, 9])[None]
    outcomes = weights @ members.T + 0.5 * both
    expected = weights.copy()
    expected[:, [3, 9]] += 0.25
    assert np.abs(values.shapley(outcomes) - expected).max() < 1e-9
    assert values.interaction(outcomes[:1])[0, 3, 9] == pytest.approx(0.5)


def test_the_efficiency_gap_shows_a_value_that_does_not_add_up():
    outcomes = game(4, lambda s: 0.5 * (0 in s) + 0.4 * (len(s) >= 3))
    assert values.efficiency_gap(values.banzhaf(outcomes), outcomes) == pytest.approx(0.2)
