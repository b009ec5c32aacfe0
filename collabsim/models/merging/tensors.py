"""One tensor of a merged model, from the same tensor of its members and its base.

In: tensors of one shape, the members' identities, a `MergeRecipe`. Out: a tensor. Trimming, the elected sign and the disjoint
mean are peft's (`peft.utils.merge_utils`). Methods: model soups (Wortsman et al. 2022, arXiv 2203.05482), task arithmetic
(Ilharco et al. 2023, arXiv 2212.04089), TIES (Yadav et al. 2023, arXiv 2306.01708), DARE (Yu et al. 2024, arXiv 2311.03099).
The order of members plays no part. Imports torch and peft: import this module where a merge is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from peft.utils.merge_utils import (
    calculate_majority_sign_mask,
    disjoint_merge,
    magnitude_based_pruning,
    task_arithmetic,
)
from torch import Tensor

from collabsim.models.merging.merge_recipe import MergeRecipe
from collabsim.seeds import derive_seed


def merge_tensor(name: str, base: Tensor, members: Sequence[tuple[str, Tensor]], recipe: MergeRecipe) -> Tensor:
    """The merged tensor, in the number format of `base`.

    `members` are (identity, tensor) pairs; equal identities may occur several times. Sums are taken in float64 (float32
    for tensors of 16 bits), so that merging a model with itself gives it back bit by bit.
    """
    wide = torch.float64 if base.dtype in (torch.float32, torch.float64) else torch.float32
    pairs = sorted(members, key=lambda pair: pair[0])
    if recipe.method == "mean":
        return torch.stack([tensor.to(wide) for _, tensor in pairs]).mean(0).to(base.dtype)
    origin = base.to(wide)
    deltas = [(identity, tensor.to(wide) - origin) for identity, tensor in pairs]
    return (origin + recipe.scale * _METHODS[recipe.method](name, deltas, recipe)).to(base.dtype)


def dare_mask(shape: Sequence[int], density: float, seed: int, identity: str, name: str) -> Tensor:
    """Which entries of a member's delta are kept: one mask a tensor, whatever the coalition, order or pass."""
    noise = torch.Generator().manual_seed(derive_seed("dare", seed, identity, name))
    return torch.rand(tuple(shape), generator=noise) < density


def _add(name: str, deltas: Sequence[tuple[str, Tensor]], recipe: MergeRecipe) -> Tensor:  # noqa: ARG001 (one signature)
    """The sum of the deltas."""
    tensors = [delta for _, delta in deltas]
    total: Tensor = task_arithmetic(tensors, torch.ones(len(tensors), dtype=tensors[0].dtype))
    return total


def _ties(name: str, deltas: Sequence[tuple[str, Tensor]], recipe: MergeRecipe) -> Tensor:  # noqa: ARG001
    """Trim to the largest, elect signs, mean of those that agree."""
    tensors = [delta for _, delta in deltas]
    if recipe.density < 1:
        tensors = [magnitude_based_pruning(delta, recipe.density) for delta in tensors]
    return _elect(tensors)


def _dare_ties(name: str, deltas: Sequence[tuple[str, Tensor]], recipe: MergeRecipe) -> Tensor:
    """Drop at random and rescale, elect signs, mean of those that agree."""
    thinned = []
    for identity, delta in deltas:
        kept = dare_mask(delta.shape, recipe.density, recipe.seed, identity, name)
        thinned.append(delta * kept / recipe.density)
    return _elect(thinned)


def _elect(tensors: Sequence[Tensor]) -> Tensor:
    stacked = torch.stack(list(tensors))
    merged: Tensor = disjoint_merge(stacked, calculate_majority_sign_mask(stacked, method="total"))
    return merged


_METHODS = {"task_arithmetic": _add, "ties": _ties, "dare_ties": _dare_ties}


def storages(model: torch.nn.Module) -> Mapping[str, torch.nn.Parameter]:
    """The model's parameters by name, each storage once: tied embeddings have one entry."""
    parameters: dict[str, torch.nn.Parameter] = {}
    seen: set[int] = set()
    for name, parameter in model.named_parameters():
        if parameter.data_ptr() not in seen:
            seen.add(parameter.data_ptr())
            parameters[name] = parameter
    return parameters
