import subprocess
import sys
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from known_games import debate, judge, shapley_of, vote

from collabsim.coalitions import values
from collabsim.coalitions.orders import chain_masks, evaluate_orders, item_orders, needed_masks, permutation_values
from collabsim.errors import ConfigError, MissingOutcomesError

ids = st.lists(st.text(max_size=5), unique=True, max_size=30)


def names(m):
    return [f"item {k}" for k in range(m)]


@given(ids, st.integers(0, 6), st.integers(0, 5))
def test_every_item_gets_an_order_of_all_players(item_ids, n, seed):
    orders = item_orders(item_ids, n, seed)
    assert list(orders) == item_ids
    assert all(sorted(order) == list(range(n)) for order in orders.values())


@given(ids, st.integers(0, 6), st.randoms())
def test_orders_do_not_depend_on_the_order_of_the_items(item_ids, n, random):
    shuffled = list(item_ids)
    random.shuffle(shuffled)
    assert item_orders(shuffled, n, 0) == item_orders(item_ids, n, 0)


@given(st.integers(1, 7), st.integers(1, 5), st.integers(0, 50))
def test_in_full_blocks_every_player_is_at_every_place_equally_often(n, blocks, seed):
    table = np.array(list(item_orders(names(n * blocks), n, seed).values()))
    for place in range(n):
        assert Counter(table[:, place].tolist()) == dict.fromkeys(range(n), blocks)


def test_each_single_order_is_uniform_over_all_orders():
    seen = Counter(item_orders(names(7), 3, seed)["item 4"] for seed in range(3000))
    expected = 3000 / 6
    chi_square = sum((seen[order] - expected) ** 2 / expected for order in permutations(range(3)))
    assert chi_square < 20.5  # 99.9% quantile at 5 degrees of freedom


def test_another_seed_and_another_set_of_items_give_other_orders():
    base = item_orders(names(20), 5, 0)
    assert item_orders(names(20), 5, 1) != base
    assert any(order != base.get(item) for item, order in item_orders(names(21)[1:], 5, 0).items())


def test_orders_are_equal_in_every_process():
    code = "from collabsim.coalitions.orders import item_orders; print(item_orders(['x', 'y', 'é'], 4, 7))"
    run = [
        subprocess.run([sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True)
        for seed in ("1", "2")
    ]
    assert run[0].stdout == run[1].stdout == f"{item_orders(['x', 'y', 'é'], 4, 7)}\n"


def test_a_repeated_item_is_refused():
    with pytest.raises(ConfigError, match="1 repeated"):
        item_orders(["a", "b", "a"], 3, 0)


def test_a_chain_goes_from_nobody_to_everybody():
    assert chain_masks((2, 0, 1)) == (0, 0b100, 0b101, 0b111)
    assert chain_masks(()) == (0,)


def test_an_item_needs_its_chain_and_everybody_alone():
    assert needed_masks((2, 0, 1)) == (0, 0b001, 0b010, 0b100, 0b101, 0b111)


def test_only_needed_outcomes_are_asked_for():
    orders = item_orders(names(9), 4, 0)
    asked = {item: set() for item in orders}
    permutation_values(orders, lambda item, mask: asked[item].add(mask) or 0.0)
    assert {item: tuple(sorted(seen)) for item, seen in asked.items()} == {
        item: needed_masks(order) for item, order in orders.items()
    }


def test_marginals_belong_to_the_player_that_joined():
    v = {0: 0.0, 0b100: 0.5, 0b101: 0.25, 0b111: 1.0, 0b001: 0.125, 0b010: 0.75}
    chains = evaluate_orders({"x": (2, 0, 1)}, lambda item, mask: v[mask])
    assert chains.marginals().tolist() == [[-0.25, 0.75, 0.5]]
    assert chains.marginals(after=1).tolist() == [[-0.25, 0.75, 0.0]]
    assert chains.marginals(after=2).tolist() == [[0.0, 0.75, 0.0]]
    assert chains.shapley()[0] == pytest.approx([0.125 / 3 - 0.25, 0.75 / 3 + 0.75, 0.5 / 3])


@pytest.mark.parametrize("hole", [None, float("nan")])
def test_a_missing_outcome_is_an_error_and_never_zero(hole):
    orders = item_orders(names(3), 2, 0)
    with pytest.raises(MissingOutcomesError, match="1 are missing"):
        permutation_values(orders, lambda item, mask: hole if (item, mask) == ("item 1", 3) else 0.5)


def test_orders_of_unequal_length_are_refused():
    with pytest.raises(ConfigError, match=r"lengths \[1, 2\]"):
        permutation_values({"a": (0,), "b": (0, 1)}, lambda item, mask: 0.0)


def test_nobody_and_one_player_need_no_chance():
    assert permutation_values({"a": (), "b": ()}, lambda item, mask: 0.5).shape == (2, 0)
    assert permutation_values({"a": (0,)}, lambda item, mask: 0.25 + 0.5 * mask).tolist() == [[0.5]]


@pytest.mark.parametrize("population", [vote([-1, 0, 1, 2, 3]), judge([0, 1, 2, 2]), debate([-1, 0, 1, 2])])
def test_the_estimate_from_orders_is_unbiased(population):
    types = population.draw(np.random.default_rng(5), 40)
    outcomes = {item: population.outcomes[t] for item, t in zip(names(40), types, strict=True)}
    found = [
        evaluate_orders(item_orders(outcomes, population.n, seed), lambda item, mask: outcomes[item][mask])
        for seed in range(200)
    ]
    exact = shapley_of(population)[types].mean(axis=0)
    late = values.shapley_after_two(population.outcomes)[types].mean(axis=0)
    for estimates, target in (
        (np.array([chains.shapley().mean(axis=0) for chains in found]), exact),
        (np.array([chains.marginals(after=2).mean(axis=0) for chains in found]), late),
    ):
        se = estimates.std(axis=0, ddof=1) / np.sqrt(len(found))
        assert (np.abs(estimates.mean(axis=0) - target) < 3 * se).all()


def test_latin_squares_and_the_known_first_place_lower_the_error():
    population, m = vote([-1, 0, 1, 2, 3]), 60
    outcomes = population.outcomes[population.draw(np.random.default_rng(2), m)]
    exact = values.shapley(outcomes).mean(axis=0)
    rows = dict(zip(names(m), outcomes, strict=True))

    def error(estimate):
        return np.mean([np.sum((estimate(seed) - exact) ** 2) for seed in range(150)])

    def ours(seed):
        return permutation_values(item_orders(rows, 5, seed), lambda item, mask: rows[item][mask]).mean(axis=0)

    def plain(seed):
        rng = np.random.default_rng(seed)
        orders = {item: tuple(int(i) for i in rng.permutation(5)) for item in rows}
        return evaluate_orders(orders, lambda item, mask: rows[item][mask]).marginals().mean(axis=0)

    assert error(ours) < 0.8 * error(plain)
