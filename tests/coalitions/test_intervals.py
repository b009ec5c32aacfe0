import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from known_games import cascade, chains_of, debate, judge, shapley_of, vote

from collabsim.coalitions.intervals import RARE_BELOW, estimates, intervals, mean_interval, pairwise_differences
from collabsim.coalitions.orders import Chains, item_orders
from collabsim.errors import ConfigError, MissingOutcomesError

ITEMS, REPEATS, EXACT_REPEATS = 120, 2000, 5000
POPULATIONS = {
    "vote": vote([-1, 0, 0.5, 1.5, 2.5]),
    "judge": judge([-1, 0, 0, 1, 2]),
    "cascade": cascade([2, 1.5, 1, 0.5, 0], confident=0.6),
    "debate": debate([-1, 0, 1, 1, 2]),
    "strong vote": vote([3, 3.5, 4, 4.5, 5]),
    "weak vote": vote([-5, -4.5, -4, -3.5, 0]),
    "strong vote of eight": vote(np.linspace(3, 5, 8)),
    "sure cascade": cascade([3, 2, 1, 0, -1], confident=0.95),
}


@pytest.fixture(scope="module")
def latin_orders():
    """Orders of every repeat, [items, repeats, 5]."""
    repeats = [list(item_orders(map(str, range(ITEMS)), 5, seed).values()) for seed in range(REPEATS)]
    return np.array(repeats).transpose(1, 0, 2)


def coverage(found, truth, telling):
    """Share of repeats that hold the truth per member, and which members have 15 telling items as a rule."""
    shape = (-1, len(truth))
    low, high = found.low.reshape(shape), found.high.reshape(shape)
    return ((low <= truth + 1e-12) & (high >= truth - 1e-12)).mean(axis=0), telling.reshape(shape).mean(axis=0) < 0.01


def check(covered, regular):
    assert (covered[regular] >= 0.93).all()
    assert (covered[regular] <= 0.97).all()
    assert (covered[~regular] >= 0.93).all()


@pytest.mark.parametrize("name", POPULATIONS)
def test_intervals_of_exact_values_cover_the_population_value(name):
    population = POPULATIONS[name]
    phi = shapley_of(population)
    types = population.draw(np.random.default_rng(11), (ITEMS, EXACT_REPEATS))
    found = intervals(phi[types].reshape(ITEMS, -1))
    check(*coverage(found, population.share @ phi, found.rare))


@pytest.mark.parametrize("name", [name for name in POPULATIONS if POPULATIONS[name].n == 5])
def test_intervals_of_values_from_one_order_an_item_cover_the_population_value(name, latin_orders):
    population = POPULATIONS[name]
    types = population.draw(np.random.default_rng(12), (ITEMS, REPEATS))
    chains = Chains(
        latin_orders.reshape(-1, 5),
        chains_of(population, types, latin_orders).reshape(-1, 6),
        population.alone[types].reshape(-1, 5),
    )
    found = intervals(chains.shapley().reshape(ITEMS, -1), marginals=chains.marginals(after=1).reshape(ITEMS, -1))
    check(*coverage(found, population.share @ shapley_of(population), found.rare))


@pytest.mark.parametrize("accuracy", [0.02, 0.1, 0.5, 0.9, 0.97, 0.995])
def test_intervals_of_scores_cover_near_0_and_1_too(accuracy):
    scores = (np.random.default_rng(13).random((200, 20_000)) < accuracy) * 1.0
    found = intervals(scores, support=(0.0, 1.0))
    assert ((found.low <= accuracy) & (found.high >= accuracy)).mean() >= 0.925


@pytest.mark.parametrize("rate", [0.002, 0.01, 0.02, 0.03, 0.05])
@pytest.mark.parametrize("size", [1.0, -1.0, 0.5])
def test_intervals_of_rare_marginals_cover(rate, size):
    marginals = (np.random.default_rng(14).random((200, 20_000)) < rate) * size
    found = intervals(marginals)
    assert ((found.low <= rate * size) & (found.high >= rate * size)).mean() >= 0.93


def test_without_the_conservative_interval_rare_marginals_would_not_be_covered():
    marginals = (np.random.default_rng(14).random((200, 5000)) < 0.01) * 1.0
    mean, se = marginals.mean(axis=0), marginals.std(axis=0, ddof=1) / np.sqrt(200)
    assert (np.abs(mean - 0.01) <= 1.97 * se).mean() < 0.9


def test_the_interval_is_students_t_when_many_items_tell():
    values = np.random.default_rng(0).normal(0.3, 0.2, 40)
    found = mean_interval(values)
    se = values.std(ddof=1) / np.sqrt(40)
    assert (found.value, found.se) == (pytest.approx(values.mean()), pytest.approx(se))
    assert found.ci95 == pytest.approx((values.mean() - 2.0226909 * se, values.mean() + 2.0226909 * se))
    assert (found.n_items, found.nonzero, found.rare) == (40, 39, False)


def test_the_rare_interval_is_that_of_the_items_with_one_more_at_each_end():
    values = np.r_[np.ones(5), np.zeros(95)]
    padded = np.r_[values, 1.0, -1.0]
    se = padded.std(ddof=1) / np.sqrt(102)
    found = mean_interval(values)
    assert (found.rare, found.nonzero, found.value) == (True, 5, 0.05)
    assert found.se == pytest.approx(se)
    assert found.ci95 == pytest.approx((padded.mean() - 1.9837310 * se, padded.mean() + 1.9837310 * se))


@pytest.mark.parametrize(("telling", "rare"), [(RARE_BELOW - 1, True), (RARE_BELOW, False)])
def test_fifteen_nonzero_marginals_are_enough(telling, rare):
    assert mean_interval(np.r_[np.ones(telling), np.zeros(200 - telling)]).rare is rare


def test_a_spread_that_four_items_carry_is_rare():
    values = np.r_[np.full(4, 1.0), np.tile([0.0, 0.01], 50)]
    assert mean_interval(values).nonzero > RARE_BELOW
    assert mean_interval(values).rare


def test_items_that_all_have_the_same_nonzero_value_tell_nothing():
    found = mean_interval(np.r_[np.full(195, 0.2), np.zeros(5)])
    assert (found.nonzero, found.rare) == (5, True)


def test_marginals_decide_where_values_hold_the_known_first_place():
    values = 0.1 * (np.random.default_rng(1).random(200) < 0.5)
    nothing_more, much_more = np.zeros(200), np.tile([0.0, 1.0], 100)
    assert not mean_interval(values).rare
    assert mean_interval(values, marginals=nothing_more).rare
    assert mean_interval(values, marginals=nothing_more).nonzero == 0
    assert not mean_interval(values + much_more, marginals=much_more).rare


@given(arrays(np.float64, st.tuples(st.integers(1, 40), st.integers(1, 4)), elements=st.sampled_from([-1, 0, 0.5, 1])))
def test_every_table_has_finite_intervals_that_hold_the_mean(values):
    for column, found in enumerate(estimates(values)):
        assert found.value == pytest.approx(values[:, column].mean())
        assert np.isfinite([found.se, *found.ci95]).all()
        assert found.ci95[0] <= found.value <= found.ci95[1]
        assert found.se > 0


@pytest.mark.parametrize("values", [np.zeros(0), np.array([0.5, np.nan])])
def test_no_items_or_a_missing_value_is_an_error(values):
    with pytest.raises(MissingOutcomesError):
        mean_interval(values)


def test_an_impossible_confidence_is_refused():
    with pytest.raises(ConfigError, match="between 0 and 1"):
        intervals(np.zeros((5, 1)), confidence=95)


def test_differences_of_all_pairs_are_covered_together():
    population = POPULATIONS["vote"]
    phi, rng = shapley_of(population), np.random.default_rng(15)
    truth = population.share @ phi
    held = 0
    for _ in range(400):
        pairs = pairwise_differences(phi[population.draw(rng, 120)])
        held += all(
            pair.estimate.ci95[0] <= truth[pair.first] - truth[pair.second] <= pair.estimate.ci95[1] for pair in pairs
        )
    assert 0.92 <= held / 400 <= 0.98


def test_simultaneous_intervals_lie_between_single_and_bonferroni_ones():
    values = np.random.default_rng(2).normal(size=(100, 5))
    pair = pairwise_differences(values)[0]
    difference = (values[:, 0] - values[:, 1])[:, None]
    width = pair.estimate.ci95[1] - pair.estimate.ci95[0]
    single, bonferroni = (intervals(difference, confidence=level) for level in (0.95, 0.995))
    assert (single.high - single.low)[0] < width < (bonferroni.high - bonferroni.low)[0]


def test_differences_name_the_members_that_differ():
    rng = np.random.default_rng(3)
    values = rng.normal([0.0, 0.0, 1.0], 0.5, (200, 3))
    assert {(pair.first, pair.second): pair.differs for pair in pairwise_differences(values)} == {
        (0, 1): False,
        (0, 2): True,
        (1, 2): True,
    }


@pytest.mark.parametrize("constant", [0.0, 0.25])
def test_equal_and_constant_members_have_differences_without_nan(constant):
    column = np.random.default_rng(4).normal(size=(60, 1))
    flat = np.full((60, 1), constant)
    for pair in pairwise_differences(np.hstack([column, column, flat, flat])):
        assert np.isfinite([pair.estimate.value, pair.estimate.se, *pair.estimate.ci95]).all()
    first = pairwise_differences(np.hstack([column, column]))[0]
    assert (first.differs, first.estimate.rare) == (False, True)


def test_simultaneous_intervals_are_the_same_in_every_call():
    values = np.random.default_rng(5).normal(size=(50, 4))
    assert pairwise_differences(values, seed=1) == pairwise_differences(values, seed=1)


def test_a_pool_of_one_or_nobody_has_no_pairs():
    assert pairwise_differences(np.zeros((5, 1))) == () == pairwise_differences(np.zeros((5, 0)))
