"""One tensor at a time, against loops over single numbers."""

from __future__ import annotations

import math

import pytest
from engines import requires
from hypothesis import given, settings
from hypothesis import strategies as st

from collabsim.models.merging.merge_recipe import MergeRecipe

pytestmark = requires("torch", "peft")


@pytest.fixture(scope="module", autouse=True)
def _libraries():
    """peft takes seconds to import: not inside an example with a deadline."""
    import collabsim.models.merging.tensors  # noqa: F401


NAMES = ("m1", "m2", "m3")
# Multiples of 1/64 with distinct magnitudes in a tensor: sums are exact and no trim meets a tie.
numbers = st.lists(st.integers(-200, 200), min_size=6, max_size=6, unique_by=abs).map(lambda row: [n / 64 for n in row])
games = st.tuples(numbers, st.lists(numbers, min_size=1, max_size=3))


def merged(base, members, recipe, name="w"):
    import torch

    from collabsim.models.merging.tensors import merge_tensor

    pairs = [(NAMES[k], torch.tensor(base) + torch.tensor(delta)) for k, delta in enumerate(members)]
    return merge_tensor(name, torch.tensor(base), pairs, recipe).tolist()


def elected(deltas):
    """Sign election and disjoint mean of one coordinate (Yadav et al. 2023, algorithm 1)."""
    sign = 1 if sum(deltas) >= 0 else -1
    agreeing = [delta for delta in deltas if delta * sign > 0]
    return sum(agreeing) / len(agreeing) if agreeing else 0.0


def trimmed(delta, density):
    largest = sorted(delta, key=abs, reverse=True)[: int(density * len(delta))]
    return [value if value in largest else 0.0 for value in delta]


@given(games)
def test_the_mean_is_the_mean(game):
    base, deltas = game
    wanted = [origin + sum(column) / len(column) for origin, *column in zip(base, *deltas, strict=True)]
    assert merged(base, deltas, MergeRecipe("mean")) == pytest.approx(wanted, abs=1e-6)


@given(games, st.sampled_from([0.3, 1.0]))
def test_task_arithmetic_adds_the_deltas(game, scale):
    base, deltas = game
    wanted = [origin + scale * sum(column) for origin, *column in zip(base, *deltas, strict=True)]
    assert merged(base, deltas, MergeRecipe("task_arithmetic", scale=scale)) == pytest.approx(wanted, abs=1e-5)


@given(games, st.sampled_from([0.17, 0.5, 1.0]), st.sampled_from([0.5, 1.0]))
def test_ties_trims_elects_and_averages(game, density, scale):
    base, deltas = game
    kept = [trimmed(delta, density) for delta in deltas]
    wanted = [origin + scale * elected(column) for origin, *column in zip(base, *kept, strict=True)]
    assert merged(base, deltas, MergeRecipe("ties", scale, density)) == pytest.approx(wanted, abs=1e-5)


@given(games, st.sampled_from([0.3, 0.7, 1.0]), st.integers(0, 3))
def test_dare_ties_thins_rescales_elects_and_averages(game, density, seed):
    from collabsim.models.merging.tensors import dare_mask

    base, deltas = game
    thinned = []
    for name, delta in zip(NAMES, deltas, strict=False):
        mask = dare_mask([6], density, seed, name, "w").tolist()
        thinned.append([value / density if kept else 0.0 for value, kept in zip(delta, mask, strict=True)])
    wanted = [origin + elected(column) for origin, *column in zip(base, *thinned, strict=True)]
    assert merged(base, deltas, MergeRecipe("dare_ties", 1.0, density, seed)) == pytest.approx(wanted, abs=1e-4)


def test_a_mask_keeps_its_share_and_depends_on_seed_member_and_tensor_alone():
    import torch

    from collabsim.models.merging.tensors import dare_mask

    one = dare_mask([100, 100], 0.3, 0, "m1", "w")
    torch.rand(5)  # the global generator plays no part
    assert torch.equal(one, dare_mask([100, 100], 0.3, 0, "m1", "w"))
    assert one.double().mean().item() == pytest.approx(0.3, abs=4 * math.sqrt(0.21 / 10_000))
    for other in ((1, "m1", "w"), (0, "m2", "w"), (0, "m1", "v")):
        agree = (one == dare_mask([100, 100], 0.3, *other)).double().mean().item()
        assert agree == pytest.approx(0.58, abs=0.03)  # as independent masks do: 0.3 ** 2 + 0.7 ** 2


@settings(max_examples=20)
@given(games, st.permutations(range(3)))
def test_the_order_of_members_changes_no_bit(game, order):
    import torch

    from collabsim.models.merging.tensors import merge_tensor

    base, deltas = game
    pairs = [(NAMES[k], torch.tensor(base) * 0.37 + torch.tensor(delta) * 0.11) for k, delta in enumerate(deltas)]
    mixed = [pairs[k] for k in order if k < len(pairs)]
    for recipe in (
        MergeRecipe("mean"),
        MergeRecipe("ties", 1.0, 0.5),
        MergeRecipe("dare_ties", 1.0, 0.5),
        MergeRecipe("task_arithmetic"),
    ):
        first, second = (merge_tensor("w", torch.tensor(base), some, recipe) for some in (pairs, mixed))
        assert torch.equal(first, second)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("copies", [1, 2, 3, 7])
@pytest.mark.parametrize("method", ["mean", "ties", "dare_ties"])
def test_a_model_merged_with_itself_is_itself_bit_by_bit(method, copies, dtype):
    import torch

    from collabsim.models.merging.tensors import merge_tensor

    noise = torch.Generator().manual_seed(3)
    base, own = (torch.randn(50, 40, generator=noise).to(getattr(torch, dtype)) for _ in range(2))
    assert torch.equal(merge_tensor("w", base, [("m", own)] * copies, MergeRecipe(method)), own)


@pytest.mark.parametrize("density", [0, -0.1, 1.1])
def test_a_density_that_cannot_be_is_refused(density):
    with pytest.raises(ValueError, match="density"):
        MergeRecipe("ties", density=density)
