import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collabsim.coalitions import approximators, masks, values
from collabsim.errors import ConfigError, MissingOutcomesError, PrerequisiteError

DENSE = ("KernelSHAP", "OwenSamplingSV", "PermutationSamplingSV", "SVARM", "StratifiedSamplingSV")
PLAIN = tuple(f"shapiq:{name}" for name in (*DENSE, "UnbiasedKernelSHAP", "kADDSHAP"))
N, BUDGET = 6, 40


def outcomes_of(n, seed=0):
    return np.random.default_rng(seed).random((1, 2**n))


def test_every_approximator_of_shapley_values_in_shapiq_is_there():
    from shapiq import approximator

    listed = {f"shapiq:{kind.__name__}" for kind in approximator.SV_APPROXIMATORS}
    assert set(approximators.approximators()) == listed
    assert set(PLAIN) < listed


@pytest.mark.parametrize("name", PLAIN)
def test_values_ask_for_exactly_the_coalitions_of_the_plan(name):
    table, asked = outcomes_of(N)[0], set()
    found = approximators.values(name, N, BUDGET, 3, lambda mask: asked.add(mask) or table[mask])
    plan = approximators.plan(name, N, BUDGET, 3)
    assert found.shape == (N,)
    assert asked <= set(plan) <= asked | {0, masks.full(N)}
    assert {0, masks.full(N)} <= set(plan)
    assert len(plan) <= BUDGET + 2


@pytest.mark.parametrize("name", PLAIN)
def test_plans_depend_on_the_seed_of_the_item_and_on_nothing_else(name):
    first = approximators.plan(name, N, BUDGET, 1)
    random.seed(5)
    np.random.seed(5)
    approximators.plan.cache_clear()
    assert approximators.plan(name, N, BUDGET, 1) == first
    assert len({approximators.plan(name, N, BUDGET, seed) for seed in range(5)}) > 1


@pytest.mark.parametrize("name", PLAIN)
def test_estimates_of_many_items_come_near_the_exact_values(name):
    n, budget = 8, 120
    members = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    weights = np.linspace(0, 0.3, n)
    table = members @ weights + 0.3 * (members[:, 0] * members[:, 7])
    exact = values.shapley(table[None])[0]
    found = [approximators.values(name, n, budget, seed, lambda mask: table[mask]) for seed in range(60)]
    assert np.abs(np.mean(found, axis=0) - exact).max() < 0.05


@settings(max_examples=20, deadline=None)
@given(st.integers(3, 7), st.integers(0, 10**6))
def test_kernel_shap_is_exact_on_additive_games(n, seed):
    weights = np.random.default_rng(seed).random(n)
    members = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    table = 0.25 + members @ weights
    found = approximators.values("shapiq:KernelSHAP", n, 2**n - 1, seed, lambda mask: table[mask])
    assert np.abs(found - weights).max() < 1e-6


@pytest.mark.slow
def test_the_sparse_approximator_is_planned_and_finds_an_additive_game():
    n = 9
    weights = np.linspace(0.05, 0.5, n)
    table = ((np.arange(2**n)[:, None] >> np.arange(n)) & 1) @ weights
    found = approximators.values("shapiq:SPEX", n, 384, 2, lambda mask: table[mask])
    assert np.abs(found - weights).max() < 1e-3


@pytest.mark.parametrize("budget", [2**N, 2**N + 100])
def test_a_budget_for_all_coalitions_is_sent_to_exact(budget):
    with pytest.raises(ConfigError, match="use exact"):
        approximators.plan("shapiq:KernelSHAP", N, budget, 0)


@pytest.mark.parametrize("n", [0, 1])
def test_pools_too_small_to_approximate_are_sent_to_exact(n):
    with pytest.raises(ConfigError, match="use exact"):
        approximators.plan("shapiq:KernelSHAP", n, 2, 0)


def test_sampling_that_never_sees_a_player_is_refused():
    with pytest.raises(ConfigError, match="never be seen"):
        approximators.plan("shapiq:PermutationSamplingSV", 12, 6, 0)


def test_a_budget_that_the_approximator_refuses_is_a_config_error():
    with pytest.raises(ConfigError, match="KernelSHAP cannot work with a budget of 1 for 6 players"):
        approximators.plan("shapiq:KernelSHAP", 6, 1, 0)


@pytest.mark.parametrize("name", ["shapiq:KernelSHAPP", "KernelSHAP"])
def test_an_unknown_name_is_refused_with_the_nearest(name):
    with pytest.raises(ConfigError, match="did you mean 'shapiq:KernelSHAP'"):
        approximators.plan(name, N, BUDGET, 0)


@pytest.mark.parametrize("hole", [None, float("nan")])
def test_a_missing_outcome_is_an_error(hole):
    with pytest.raises(MissingOutcomesError, match="KernelSHAP"):
        approximators.values("shapiq:KernelSHAP", N, BUDGET, 0, lambda mask: hole if mask.bit_count() == 1 else 0.5)


class Greedy:
    """An approximator that looks closer at whatever scored best."""

    def __init__(self, n, random_state=None):
        self.n = n

    def approximate(self, budget, game):
        singles = game(np.eye(self.n, dtype=bool))
        best = np.zeros(self.n, dtype=bool)
        best[[int(np.argmax(singles)), -1]] = True
        return {(i,): 1.0 + game(best)[0] for i in range(self.n)}


class Global:
    """An approximator that draws from the global generators, whatever its random state."""

    def __init__(self, n, random_state=None):
        self.n = n

    def approximate(self, budget, game):
        picked = [random.randrange(1, 2**self.n), int(np.random.randint(1, 2**self.n))]
        total = game((np.array(picked)[:, None] >> np.arange(self.n)) & 1).sum()
        return {(i,): 1.0 + total for i in range(self.n)}


class Unavailable:
    def __init__(self, n, random_state=None):
        raise ImportError("The 'lightgbm' package is required")


@pytest.fixture
def other_approximators(monkeypatch):
    monkeypatch.setattr(
        approximators, "_classes", lambda: {kind.__name__: kind for kind in (Greedy, Global, Unavailable)}
    )
    approximators.plan.cache_clear()
    yield
    approximators.plan.cache_clear()


@pytest.mark.usefixtures("other_approximators")
def test_an_approximator_that_leaves_its_plan_is_refused():
    with pytest.raises(ConfigError, match="cannot be planned"):
        approximators.values("shapiq:Greedy", 5, 10, 0, lambda mask: float(mask == 0b00100))


@pytest.mark.usefixtures("other_approximators")
def test_an_approximator_that_draws_from_global_generators_keeps_to_its_plan_and_leaves_them_alone():
    random.seed(1)
    np.random.seed(1)
    before = (random.getstate(), np.random.get_state()[1].tolist())
    asked = set()
    approximators.values("shapiq:Global", 8, 20, 2, lambda mask: asked.add(mask) or 0.5)
    assert asked < set(approximators.plan("shapiq:Global", 8, 20, 2))
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before


@pytest.mark.usefixtures("other_approximators")
def test_an_approximator_whose_package_is_missing_says_which():
    with pytest.raises(PrerequisiteError, match="lightgbm"):
        approximators.plan("shapiq:Unavailable", 5, 10, 0)


def test_items_have_their_own_states_from_content():
    assert approximators.item_seed(1, "a") == approximators.item_seed(1, "a")
    assert len({approximators.item_seed(seed, item) for seed in (0, 1) for item in ("a", "b")}) == 4
