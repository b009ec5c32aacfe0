"""What leave-one-out subtracts cancels where DESIGN says so, and matters where it says so; and what `shapley` maximises."""

import itertools
import math
from collections import Counter

import pytest
import torch
from collabsim.trainers.advantages import Estimator
from collabsim.trainers.losses import LOSSES, Loss, loss_named
from collabsim.trainers.objectives import draw_coalition, parse_objective
from collabsim.trainers.policy.token_row import TokenRow
from collabsim.trainers.records import Counts, Group, GroupId, Row, Run, Visit
from collabsim.trainers.rollouts import RolloutPlan, collect
from collabsim.trainers.updates import examples
from scripted import Scripted
from tabular import Noisy, Tabular
from test_losses import gradient_of

from collabsim import Sampling, Seat, System, make_item
from collabsim.coalitions.values import shapley

ITEMS = [make_item(f"What is {k} + {5 - k}?", "5") for k in range(5)]
WORDS = ["Answer: 5", "Answer: 4"]
CANCELS = {
    "mean-centred": Estimator("mean"),
    "group std": Estimator("mean", "group_std"),
    "rloo": Estimator("others"),
    "batch std of centred rewards": Estimator("mean", "batch_centred_std"),
}
DOES_NOT = {
    "no group mean": Estimator("none"),
    "batch std of raw rewards": Estimator("mean", "batch_std"),
    "filter on the group's mean": Estimator("mean", keep_means=(0.2, 0.6)),
}


def vote():
    pool = {"me": Seat("me", Scripted("me", "unused"), sampling=Sampling(temperature=1.0, max_tokens=3))}
    pool |= {f"p{k}": Noisy(f"p{k}", {"Answer: 5": 0.6, "Answer: 4": 0.4}) for k in range(3)}
    return System("majority_vote", pool)


async def groups_for(term, noise="crossed", coalition="full"):
    model = Tabular(WORDS, prompts=5, seed=3)
    plan = RolloutPlan("me", parse_objective(term), 6, noise, 4, coalition)
    return model, await collect(vote(), model, [Visit(item, number) for item in ITEMS for number in range(4)], plan)


async def both(estimator, **how):
    """The parameter gradients under `system` and `leave_one_out`, on the same rollouts."""
    found = []
    for term in ("system", "leave_one_out"):
        model, groups = await groups_for(term, **how)
        found.append(gradient_of(model, groups, Loss("tried", estimator)))
    return found


@pytest.mark.parametrize("name", CANCELS)
@pytest.mark.parametrize("noise", ["crossed", "shared"])
async def test_the_gradient_under_leave_one_out_is_that_under_system(name, noise):
    system, without = await both(CANCELS[name], noise=noise)
    assert float(system.abs().max()) > 1e-3
    assert torch.allclose(system, without, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", LOSSES)
async def test_it_cancels_under_every_named_loss(name):
    system, without = await both(LOSSES[name].estimator)
    assert torch.allclose(system, without, rtol=1e-9, atol=1e-12)


async def test_it_cancels_within_one_drawn_coalition_too():
    system, without = await both(Estimator("mean"), noise="shared", coalition="shapley")
    assert float(system.abs().max()) > 1e-3
    assert torch.allclose(system, without, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", DOES_NOT)
async def test_the_gradient_under_leave_one_out_differs_where_the_level_matters(name):
    system, without = await both(DOES_NOT[name])
    assert not torch.allclose(system, without, rtol=0.01, atol=1e-4)


async def test_a_baseline_drawn_for_each_run_does_not_cancel():
    system, without = await both(Estimator("mean"), noise="independent")
    assert not torch.allclose(system, without, rtol=0.01, atol=1e-4)


def test_the_value_without_the_learner_matters_when_an_unfrozen_partner_shares_its_weights():
    # v(N) is right when either says 5, v(N without me) when the twin does: both move with the shared weights
    policy = Tabular(WORDS)
    right = policy.logprob(0, 0).exp()
    with_me, without_me = 1 - (1 - right) ** 2, right
    assert not torch.allclose(policy.gradient(with_me), policy.gradient(with_me - without_me), rtol=0.01)


async def test_system_makes_no_run_without_the_learner_and_leave_one_out_one_for_each_partner_draw():
    _, plain = await groups_for("system")
    _, less = await groups_for("leave_one_out")
    assert sum(group.counts.without_learner for group in plain) == 0
    assert sum(group.counts.without_learner for group in less) == 4 * 4 * len(ITEMS)


# ---- coalition: shapley ----------------------------------------------------------------------------------------------

SEATS = ("a", "me", "b")
SAID = {"a": "Answer: 5", "b": "Answer: 4"}


def outcomes_by_action():
    """Outcome of a real vote for every coalition and every action of the learner (or None without it)."""
    table = {}
    for action in range(len(WORDS)):
        pool = {name: Scripted(f"{name}{action}", SAID.get(name, WORDS[action])) for name in SEATS}
        system = System("majority_vote", pool)
        for size in range(4):
            for present in itertools.combinations(SEATS, size):
                episode = system.run(ITEMS[0], present)
                table[frozenset(present), action if "me" in present else None] = episode.outcome
    return table


def learners_shapley_value(policy, table):
    """Of the learner, as a function of its weights, in closed form: v(S) is an expectation over its action."""
    weights = [policy.logprob(0, action).exp() for action in range(len(WORDS))]
    total = sum(weights)  # only replies of one word are played here
    v = {}
    for size in range(4):
        for present in itertools.combinations(SEATS, size):
            s = frozenset(present)
            v[s] = (
                sum(w / total * table[s, action] for action, w in enumerate(weights))
                if "me" in s
                else torch.tensor(table[s, None], dtype=torch.float64)
            )
    value = torch.zeros((), dtype=torch.float64)
    for size in range(3):
        for rest in itertools.combinations(("a", "b"), size):
            weight = math.factorial(size) * math.factorial(2 - size) / math.factorial(3)
            value = value + weight * (v[frozenset((*rest, "me"))] - v[frozenset(rest)])
    return value, v


def expected_gradient(policy, table):
    """The exact expectation of one update under `coalition: shapley`: all coalitions, all pairs of samples, RLOO."""
    probabilities = [policy.logprob(0, action).exp().item() for action in range(len(WORDS))]
    probabilities = [p / sum(probabilities) for p in probabilities]
    total = torch.zeros_like(policy.logits)
    for size in range(3):
        sets = list(itertools.combinations(("a", "b"), size))
        for rest, (i, j) in itertools.product(sets, itertools.product(range(len(WORDS)), repeat=2)):
            present = frozenset((*rest, "me"))
            runs = tuple(Run(table[present, k], (_row(policy, k),)) for k in (i, j))
            if runs[0].reward == runs[1].reward:
                continue
            chance = probabilities[i] * probabilities[j] / (3 * len(sets))
            group = Group(GroupId("item", 0, 0, "system"), 1.0, runs, Counts())
            total = total - chance * gradient_of(policy, [group], loss_named("rloo"), divisor=2.0)
    return total


def _row(policy, action):
    tokens = TokenRow((0,), (action,))
    return Row(tokens, tuple(policy.token_logprobs([tokens], 1.0)[0].tolist()), 1.0, "0", 0, "stop")


def test_the_shapley_rule_gives_the_gradient_of_the_learners_shapley_value():
    policy, table = Tabular(WORDS), outcomes_by_action()
    with torch.no_grad():
        policy.logits[0, 0, 2] = -1e9  # the learner always says one of its words
    value, v = learners_shapley_value(policy, table)
    brute = policy.gradient(value)
    assert float(brute.abs().max()) > 1e-2
    assert torch.allclose(expected_gradient(policy, table), brute, atol=1e-9)
    dense = [[v[frozenset(name for k, name in enumerate(SEATS) if mask >> k & 1)].item() for mask in range(8)]]
    assert value.item() == pytest.approx(float(shapley(torch.tensor(dense).double().numpy(), SEATS)[0, 1]))


def test_predecessors_are_drawn_by_size_and_then_uniformly():
    others = ("a", "b", "c")
    counts = Counter(
        draw_coalition("shapley", ("me", *others), "me", 0, f"item {k}", visit)
        for k in range(2000)
        for visit in range(3)
    )
    assert all("me" in present for present in counts)
    for size in range(4):
        for rest in itertools.combinations(others, size):
            share = counts[frozenset((*rest, "me"))] / 6000
            assert share == pytest.approx(1 / 4 / math.comb(3, size), abs=0.02)


def test_the_drawn_coalition_depends_on_item_and_visit_alone():
    draws = [draw_coalition("shapley", seats, "me", 0, "x", 1) for seats in (("me", "a", "b"), ("b", "me", "a"))]
    assert draws[0] == draws[1]
    assert draw_coalition("full", ("me", "a"), "me", 0, "x", 1) is None


@pytest.mark.parametrize("coalition", ["full", "shapley"])
async def test_examples_keep_the_rows_of_their_own_group(coalition):
    _, groups = await groups_for("system", noise="shared", coalition=coalition)
    rows, found = examples(groups, loss_named("rloo"))
    assert found.groups == 4 * len(ITEMS)
    assert {one.item for one in rows} <= {item.id for item in ITEMS}
