import numpy as np
import pytest
from known_games import chains_of, shapley_of, specialists, vote

from collabsim.coalitions.orders import Chains
from collabsim.coalitions.relation import correlation, relation, verdict_of
from collabsim.errors import ConfigError

STUDIES = 1000
SIGN = {"concordant": 1, "inverted": -1, "undecided": 0}
ALIGNED = {
    "far apart": vote([-2, -0.5, 1, 3]),
    "close": vote([0, 0.3, 0.6, 0.9, 1.2]),
    "nearly tied": vote([0.5, 0.55, 0.6, 0.65]),
}
CLONES = [0, 0, 0, 1]  # three copies of a model that is strong on the larger topic, one specialist for the other
MISALIGNED = {
    "plain": specialists([0.65, 0.35], [[0.95, 0.05], [0.05, 0.95]], CLONES),
    "slight": specialists([0.7, 0.3], [[0.9, 0.25], [0.05, 0.6]], CLONES),
    "hidden by a clear order": specialists(
        [0.55, 0.45], [[0.9, 0.05, 0.1, 0.6], [0.05, 0.9, 0.1, 0.6]], [0, 0, 1, 2, 3]
    ),
}
TIED = {
    "equal": vote([0.5] * 5),
    "equal and strong": vote([3.5] * 5),
    "equal but for one": vote([2, -2.5, -2.5, -2.5, -2.5]),
    "clones": specialists([1.0], [[0.6, 0.8]], [0, 0, 0, 1]),
}


def truth(population):
    """+1, 0 or -1 by pair, from the population."""
    individual = population.share @ population.alone
    value = population.share @ shapley_of(population)
    pairs = zip(*np.triu_indices(population.n, 1), strict=True)
    sign = [np.sign(np.round([x[i] - x[j] for x in (individual, value)], 9)) for i, j in pairs]
    return [int(a * b) for a, b in sign]


def studies(population, items, seed=0, by_orders=False, repeats=STUDIES):
    """Verdicts and pair calls of simulated studies with items drawn anew in each."""
    rng, phi = np.random.default_rng(seed), shapley_of(population)
    for _ in range(repeats):
        types = population.draw(rng, items)
        value = phi[types]
        if by_orders:
            orders = np.argsort(rng.random((items, population.n)), axis=1)
            value = Chains(orders, chains_of(population, types, orders), population.alone[types]).shapley()
        verdict, pairs = verdict_of(population.alone[types], value)
        yield verdict, [SIGN[pair.verdict] for pair in pairs]


def rates(population, items, by_orders=False, repeats=STUDIES):
    """Share of each verdict, and of studies in which some pair is called against the truth or called though tied."""
    real, counts, wrong = truth(population), {"aligned": 0, "misaligned": 0, "undecided": 0}, 0
    for verdict, calls in studies(population, items, by_orders=by_orders, repeats=repeats):
        counts[verdict] += 1
        wrong += any(call not in (0, fact) for call, fact in zip(calls, real, strict=True))
    return {name: count / repeats for name, count in counts.items()}, wrong / repeats


def test_the_simulated_pools_are_what_they_are_called():
    assert all(min(truth(population)) > 0 for population in ALIGNED.values())
    assert all(min(truth(population)) < 0 for population in MISALIGNED.values())
    assert all(0 in truth(population) and min(truth(population)) == 0 for population in TIED.values())


@pytest.mark.parametrize("by_orders", [False, True])
@pytest.mark.parametrize("name", ALIGNED)
def test_aligned_pools_are_rarely_called_misaligned(name, by_orders):
    verdicts, wrong = rates(ALIGNED[name], 100, by_orders=by_orders)
    assert verdicts["misaligned"] <= 0.05
    assert wrong <= 0.05


@pytest.mark.parametrize("by_orders", [False, True])
@pytest.mark.parametrize("name", MISALIGNED)
def test_misaligned_pools_are_rarely_called_aligned(name, by_orders):
    verdicts, wrong = rates(MISALIGNED[name], 200, by_orders=by_orders)
    assert verdicts["aligned"] <= 0.05
    assert wrong <= 0.05


@pytest.mark.parametrize("by_orders", [False, True])
@pytest.mark.parametrize("name", TIED)
def test_tied_pairs_stay_undecided(name, by_orders):
    verdicts, wrong = rates(TIED[name], 150, by_orders=by_orders)
    assert wrong <= 0.05
    assert verdicts["misaligned"] <= 0.05


def test_with_few_items_tied_pairs_stay_undecided_too():
    for name in TIED:
        assert rates(TIED[name], 20)[1] <= 0.05


def test_clear_cases_are_decided():
    assert rates(ALIGNED["far apart"], 200, repeats=200)[0]["aligned"] > 0.9
    assert rates(MISALIGNED["plain"], 600, repeats=200)[0]["misaligned"] > 0.9


def test_one_concordant_pair_is_not_enough_to_be_called_aligned():
    population = MISALIGNED["hidden by a clear order"]
    tempting = [
        verdict for verdict, calls in studies(population, 200, repeats=200) if max(calls) > 0 and min(calls) >= 0
    ]
    assert len(tempting) > 0.5 * 200  # a looser rule would call these aligned
    assert "aligned" not in tempting


def test_two_members_are_never_inverted():
    verdicts, wrong = rates(vote([0, 1]), 100, repeats=200)
    assert (verdicts["misaligned"], wrong) == (0, 0)


def test_pairs_carry_the_differences_and_intervals_behind_their_verdict():
    population = MISALIGNED["plain"]
    types = population.draw(np.random.default_rng(1), 400)
    found = relation(population.alone[types], shapley_of(population)[types])
    pair = next(pair for pair in found.pairs if (pair.first, pair.second) == (0, 3))
    assert (found.verdict, pair.verdict) == ("misaligned", "inverted")
    assert 0 < pair.individual.low < pair.individual.value < pair.individual.high
    assert pair.value.low < pair.value.value < pair.value.high < 0


@pytest.mark.parametrize("n", [0, 1])
def test_a_pool_without_pairs_is_undecided(n):
    found = relation(np.zeros((5, n)), np.zeros((5, n)))
    assert (found.verdict, found.pairs) == ("undecided", ())
    assert found.correlations["shapley"].pearson is None


def test_matrices_of_different_shapes_are_refused():
    with pytest.raises(ConfigError, match=r"leave_one_out.*\[5, 3\] and \[5, 4\]"):
        relation(np.zeros((5, 4)), np.zeros((5, 4)), leave_one_out=np.zeros((5, 3)))


def test_correlations_come_for_each_value_that_is_given():
    strengths = np.random.default_rng(0).normal([0, 1, 2, 3, 4], 0.5, (200, 5))
    found = relation(strengths, strengths, leave_one_out=-strengths, shapley_after_two=strengths[:, [0, 2, 1, 3, 4]])
    assert {name: r.pearson for name, r in found.correlations.items()} == {
        "shapley": pytest.approx(1.0),
        "leave_one_out": pytest.approx(-1.0),
        "shapley_after_two": pytest.approx(0.9, abs=0.02),
    }
    assert found.correlations["shapley_after_two"].kendall == pytest.approx(0.8)
    assert found.correlations["shapley_after_two"].spearman == pytest.approx(0.9)


def test_correlations_of_fewer_than_four_members_are_not_given():
    strengths = np.random.default_rng(0).normal([0, 1, 2], 0.1, (200, 3))
    found = correlation(strengths, strengths)
    assert (found.pearson, found.spearman, found.kendall, found.corrected) == (None,) * 4
    assert found.reliability_value > 0.99


def test_correlations_of_noise_are_not_given():
    rng = np.random.default_rng(6)
    found = correlation(rng.normal([0, 1, 2, 3], 0.5, (100, 4)), rng.normal(0, 1, (100, 4)))
    assert found.pearson is None
    assert found.reliability_value < 0.5 < found.reliability_individual


def test_members_that_all_score_alike_have_no_correlation_and_no_nan():
    found = correlation(np.ones((50, 5)), np.random.default_rng(0).normal([0, 1, 2, 3, 4], 1, (50, 5)))
    assert (found.pearson, found.reliability_individual) == (None, None)


def test_reliability_is_the_signal_share_of_the_variance_between_members():
    rng = np.random.default_rng(7)
    shared = rng.normal(0, 3, (200, 50, 1))  # difficulty moves all members alike and does not count
    noise = rng.normal(0, 1, (200, 50, 80))  # many members, so that the ratio has little bias
    strengths = np.linspace(0, 0.5, 80)
    signal = strengths.var(ddof=1)
    found = [correlation(x, x).reliability_value for x in strengths + shared + noise]
    assert np.mean(found) == pytest.approx(signal / (signal + 1 / 50), abs=0.02)


def test_the_corrected_correlation_takes_out_noise_that_both_sides_share():
    rng = np.random.default_rng(8)
    x, y = np.array([0, 1, 2, 3, 4, 5]) / 5, np.array([2, 0, 5, 4, 1, 3]) / 5
    real = np.corrcoef(x, y)[0, 1]
    raw, corrected = [], []
    for _ in range(500):
        noise = rng.normal(0, 2, (100, 6))
        found = correlation(x + noise, y + noise)
        if found.pearson is not None:
            raw.append(found.pearson)
            corrected.append(found.corrected)
    assert len(raw) > 400
    assert abs(np.mean(corrected) - real) < 0.4 * abs(np.mean(raw) - real)
