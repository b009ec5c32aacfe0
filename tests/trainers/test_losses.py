"""Losses: their value and gradient against sums written by hand, clipping, weights, KL, and the biased norm."""

import itertools
import math

import pytest
import torch
from collabsim.trainers.losses import LOSSES, kl_k3, loss_named, row_loss
from collabsim.trainers.policy.token_row import TokenRow
from collabsim.trainers.records import Counts, Group, GroupId, Row, Run
from collabsim.trainers.updates import examples, micro_batches, update
from tabular import Tabular

from collabsim.errors import ConfigError, TrainingError

NAMES = list(LOSSES)


def row(policy, ids, prompt=0, temperature=1.0, shift=0.0):
    tokens = TokenRow((prompt,), tuple(ids))
    logprobs = policy.token_logprobs([tokens], temperature)[0].detach() - shift
    return Row(tokens, tuple(logprobs.tolist()), temperature, "0", 0, "stop")


def group(runs, name="item", weight=1.0):
    """A group of (reward, rows) runs."""
    return Group(
        GroupId(name, 0, 0, "system"), weight, tuple(Run(reward, tuple(rows)) for reward, rows in runs), Counts()
    )


class Kept(torch.optim.SGD):
    """An optimiser that keeps the gradient and changes nothing."""

    def __init__(self, parameters):
        super().__init__(parameters, lr=1.0)
        self.gradient = None

    def step(self, closure=None):
        self.gradient = self.param_groups[0]["params"][0].grad.clone()


def gradient_of(policy, groups, loss, divisor=8.0, **settings):
    optimizer = Kept(policy.parameters())
    rows, _ = examples(groups, loss)
    update(policy, optimizer, rows, loss, divisor=divisor, grad_clip=None, **settings)
    return torch.zeros_like(policy.logits) if optimizer.gradient is None else optimizer.gradient


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("unit", ["call", "token"])
@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_the_gradient_is_the_hand_written_sum_over_all_tokens_of_all_calls(name, unit, temperature):
    policy = Tabular("xyz", prompts=3)
    one = [row(policy, [0, 3], 0, temperature)]
    two = [row(policy, [1, 2, 0, 3], 1, temperature), row(policy, [2, 3], 2, temperature)]
    none = [row(policy, [3], 2, temperature)]
    groups = [group([(1.0, one), (0.0, two), (0.5, none)])]
    found = gradient_of(policy, groups, loss_named(name, unit=unit))
    advantages = {
        "grpo": [math.sqrt(1.5), -math.sqrt(1.5), 0.0],
        "dr_grpo": [0.5, -0.5, 0.0],
        "rloo": [0.75, -0.75, 0.0],
        "reinforce": [0.5, -0.5, 0.0],
    }[name]
    by_hand = torch.zeros((), dtype=torch.float64)
    for advantage, rows in zip(advantages, [one, two, none], strict=True):
        for call in rows:
            before = 0
            for token in call.tokens.ids:
                logits = policy.logits[call.tokens.prompt_ids[0], before] / temperature
                by_hand = by_hand - advantage * (logits[token] - logits.logsumexp(0)) / 8.0
                before = token + 1
    assert torch.allclose(found, policy.gradient(by_hand), atol=1e-12)


def test_micro_batches_of_any_size_add_up_to_the_same_gradient():
    policy = Tabular("xyz", prompts=2)
    rows = [row(policy, [k % 3] * (1 + k % 4) + [3], k % 2) for k in range(9)]
    groups = [group([(float(k % 2), [one]) for k, one in enumerate(rows)])]
    loss = loss_named("grpo")
    whole = gradient_of(policy, groups, loss, budget=10_000)
    parts = gradient_of(policy, groups, loss, budget=6)
    assert len(list(micro_batches(examples(groups, loss)[0], 6))) > 4
    assert torch.allclose(whole, parts, atol=1e-12)


def test_micro_batches_stay_within_their_budget_and_keep_temperatures_apart():
    policy = Tabular("xyz")
    rows = [row(policy, [0] * length + [3], temperature=t) for length in range(9) for t in (1.0, 0.5)]
    made, _ = examples([group([(float(k % 2), [one]) for k, one in enumerate(rows)])], loss_named("dr_grpo"))
    batches = list(micro_batches(made, 12))
    for batch in batches:
        assert len({one.row.temperature for one in batch}) == 1
        longest = max(len(one.row.tokens.ids) + 1 for one in batch)
        assert len(batch) == 1 or len(batch) * longest <= 12
    assert sum(map(len, batches)) == len(rows)


def test_the_divisor_is_a_constant_that_counts_runs_without_a_row():
    policy = Tabular("xyz")
    called = [(1.0, [row(policy, [0, 3])]), (0.0, [row(policy, [1, 3])])]
    alone = gradient_of(policy, [group([*called, (0.5, [row(policy, [2, 3])])])], loss_named("dr_grpo"))
    uncalled = gradient_of(policy, [group([*called, (0.5, [])])], loss_named("dr_grpo"))
    assert torch.allclose(alone, uncalled)  # the third run's advantage is 0 either way; the others keep theirs


def test_the_weight_of_a_term_multiplies_its_gradient():
    policy = Tabular("xyz")
    runs = [(1.0, [row(policy, [0, 3])]), (0.0, [row(policy, [1, 3])])]
    once = gradient_of(policy, [group(runs)], loss_named("dr_grpo"))
    weighted = gradient_of(policy, [group(runs, weight=0.3)], loss_named("dr_grpo"))
    assert torch.allclose(weighted, 0.3 * once)


@pytest.mark.parametrize("unit", ["call", "token"])
def test_the_difference_between_learner_and_engine_is_weighted_and_cut_at_the_cap(unit):
    new = torch.tensor([-1.0, -2.0], dtype=torch.float64, requires_grad=True)
    loss = loss_named("dr_grpo", unit=unit, cap=2.0)
    near = row_loss(loss, new, new.detach() - 0.1, 1.0)
    assert near.weight == pytest.approx(math.exp(0.2 if unit == "call" else 0.1))
    assert near.gap == pytest.approx(0.1)
    assert row_loss(loss, new, new.detach() - 5.0, 1.0).weight == 2.0
    assert row_loss(loss, new, new.detach() + 50.0, 1.0).weight == pytest.approx(0.0, abs=1e-8)


def test_the_weight_carries_no_gradient_of_its_own():
    new = torch.tensor([-1.0, -2.0], dtype=torch.float64, requires_grad=True)
    row_loss(loss_named("dr_grpo"), new, new.detach() - 0.1, 1.0).value.backward()
    assert new.grad.tolist() == pytest.approx([-math.exp(0.2)] * 2)


@pytest.mark.parametrize(("advantage", "step", "clipped"), [(1.0, 0.3, True), (1.0, -0.3, False), (-1.0, -0.3, True)])
def test_a_ratio_that_went_far_enough_in_the_right_direction_pushes_no_further(advantage, step, clipped):
    old = torch.tensor([-1.0, -2.0], dtype=torch.float64)
    new = (old + torch.tensor([step, 0.0])).requires_grad_()
    found = row_loss(loss_named("grpo"), new, old, advantage, old=old)
    found.value.backward()
    assert found.clipped is clipped
    assert bool((new.grad == 0).all()) is clipped


def test_the_ratio_of_a_call_is_the_product_over_its_tokens():
    old = torch.tensor([-1.0, -2.0], dtype=torch.float64)
    new = (old + torch.tensor([0.15, 0.15])).requires_grad_()
    assert row_loss(loss_named("grpo", unit="call"), new, old, 1.0, old=old).clipped
    assert not row_loss(loss_named("grpo", unit="token"), new, old, 1.0, old=old).clipped


def test_a_second_epoch_compares_with_the_weights_before_the_first():
    policy = Tabular("xyz")
    groups = [group([(1.0, [row(policy, [0, 3])]), (0.0, [row(policy, [1, 3])])])]
    rows, _ = examples(groups, loss_named("grpo"))
    optimizer = torch.optim.SGD(policy.parameters(), lr=20.0)
    stats = update(policy, optimizer, rows, loss_named("grpo"), divisor=2.0, grad_clip=None, epochs=2)
    assert stats.clipped > 0
    assert stats.grad_norm < 1e-6


def test_k3_is_never_negative_and_estimates_the_divergence():
    p = torch.log_softmax(torch.tensor([0.3, -1.0, 2.0], dtype=torch.float64), 0)
    q = torch.log_softmax(torch.tensor([1.0, 0.5, -0.2], dtype=torch.float64), 0)
    k3 = kl_k3(p, q)
    assert bool((k3 >= 0).all())
    assert float((p.exp() * k3).sum()) == pytest.approx(float((p.exp() * (p - q)).sum()))


def test_the_kl_term_pulls_towards_the_start():
    policy, start = Tabular("xyz", seed=0), Tabular("xyz", seed=1)
    runs = [(1.0, [row(policy, [0, 3])]), (0.0, [row(policy, [1, 3])])]
    plain = gradient_of(policy, [group(runs)], loss_named("dr_grpo"))
    pulled = gradient_of(policy, [group(runs)], loss_named("dr_grpo", kl=0.5), reference=start)
    by_hand = torch.zeros((), dtype=torch.float64)
    for ids in ([0, 3], [1, 3]):
        tokens = TokenRow((0,), tuple(ids))
        new, old = policy.token_logprobs([tokens], 1.0)[0], start.token_logprobs([tokens], 1.0)[0].detach()
        by_hand = by_hand + 0.5 * ((old - new).exp() - (old - new) - 1).sum() / 8.0
    assert torch.allclose(pulled - plain, policy.gradient(by_hand), atol=1e-12)


def three_paths(norm):
    """Expected gradient of one update over replies of 1, 2 and 3 tokens with rewards 1, 0.5 and 0, equally likely.

    The first token decides; the others are forced. G = 2 samples by RLOO, all nine pairs by their probability.
    """
    policy = Tabular("abc")
    with torch.no_grad():
        policy.logits.zero_()
        policy.logits[0, 0, 3] = -1e9  # a reply is never empty
        policy.logits[0, 1:, :] = -1e9
        policy.logits[0, 1:, 2] = 0.0
    paths, rewards = [[0], [1, 2], [2, 2, 2]], [1.0, 0.5, 0.0]
    total = torch.zeros_like(policy.logits)
    for i, j in itertools.product(range(3), repeat=2):
        runs = [(rewards[k], [row(policy, paths[k])]) for k in (i, j)]
        loss = loss_named("rloo", norm=norm)
        if rewards[i] != rewards[j]:
            total = total - gradient_of(policy, [group(runs)], loss, divisor=2.0) / 9
    return total[0, 0, :3].tolist()


def test_dividing_by_a_constant_gives_the_gradient_of_the_expected_reward():
    assert three_paths("constant") == pytest.approx([1 / 6, 0, -1 / 6])


def test_dividing_by_a_runs_own_tokens_is_biased_and_marked_so():
    assert three_paths("run") == pytest.approx([0.130, -0.037, -0.093], abs=5e-4)
    assert loss_named("grpo", norm="run").biased
    assert not loss_named("grpo").biased


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_names_the_item_and_leaves_the_weights_alone(broken):
    policy = Tabular("xyz")
    groups = [group([(1.0, [row(policy, [0, 3])]), (0.0, [row(policy, [1, 3])])], name="item-7")]
    rows, _ = examples(groups, loss_named("grpo"))
    with torch.no_grad():
        policy.logits[0, 0, 1] = broken
    before = policy.logits.detach().clone()
    with pytest.raises(TrainingError, match="item-7"):
        update(policy, torch.optim.SGD(policy.parameters(), lr=1.0), rows, loss_named("grpo"), divisor=2.0)
    assert torch.equal(policy.logits.detach().nan_to_num(7), before.nan_to_num(7))


def test_a_batch_without_signal_changes_nothing():
    policy = Tabular("xyz")
    groups = [group([(1.0, [row(policy, [0, 3])]), (1.0, [row(policy, [1, 3])])])]
    rows, found = examples(groups, loss_named("grpo"))
    before = policy.logits.detach().clone()
    optimizer = torch.optim.AdamW(policy.parameters(), weight_decay=0.5)
    assert update(policy, optimizer, rows, loss_named("grpo"), divisor=2.0).rows == 0
    assert found.flat == 1
    assert torch.equal(policy.logits.detach(), before)


def test_an_unknown_loss_is_refused_with_the_nearest_name():
    with pytest.raises(ConfigError, match="did you mean 'grpo'"):
        loss_named("grppo")
