"""Drawing tokens: the distribution, what truncation keeps, and that rows do not touch each other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from engines import requires
from scipy.stats import chisquare

from collabsim.request import Sampling

pytestmark = requires("torch")

PLAIN = Sampling(temperature=1.0)


def draw(logits, settings, uniforms):
    from collabsim.models.engines.token_sampling import draw_tokens

    return draw_tokens(logits, settings, uniforms)


def random_logits(rows: int, vocabulary: int, seed: int = 0, spread: float = 2.0):
    import torch

    return torch.randn(rows, vocabulary, generator=torch.Generator().manual_seed(seed)) * spread


@pytest.mark.parametrize(
    "sampling",
    [
        PLAIN,
        PLAIN.replace(temperature=0.5),
        PLAIN.replace(top_k=6),
        PLAIN.replace(top_p=0.8),
        PLAIN.replace(temperature=1.7, top_k=12, top_p=0.6),
    ],
)
def test_tokens_come_as_often_as_their_logprobs_say(sampling):
    rows, vocabulary = 40_000, 600  # more than two chunks of the running sum
    logits = random_logits(1, vocabulary).expand(rows, -1)
    uniforms = np.random.default_rng(1).random(rows)
    ids, logprobs = draw(logits, [sampling] * rows, uniforms.tolist())
    seen = dict(zip(ids, logprobs, strict=True))
    counts = np.bincount(ids, minlength=vocabulary)
    common = [token for token, logprob in seen.items() if math.exp(logprob) * rows > 5]
    expected = np.array([math.exp(seen[token]) * rows for token in common])
    rest = rows - expected.sum()
    observed = counts[common]
    if rest > 5:
        expected, observed = np.append(expected, rest), np.append(observed, rows - observed.sum())
    assert chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > 1e-3


@pytest.mark.parametrize("top_k", [1, 3, 64, 65, 900, 3000])
def test_exactly_top_k_tokens_stay_and_share_all_mass(top_k):
    assert kept(random_logits(3, 3000), top_k=top_k, top_p=1.0) == [top_k] * 3


@pytest.mark.parametrize("top_p", [0.05, 0.5, 0.9, 0.99, 0.99999])
@pytest.mark.parametrize("spread", [0.01, 1.0, 8.0])
def test_the_nucleus_is_the_shortest_list_that_reaches_top_p(top_p, spread):
    logits = random_logits(4, 3000, spread=spread)
    for row, count in zip(logits, kept(logits, top_k=3000, top_p=top_p), strict=True):
        mass = np.sort(np.exp(row.double().numpy() - float(row.max())))[::-1]
        share = np.cumsum(mass) / mass.sum()
        assert count == 1 or share[count - 2] < top_p + 1e-6
        assert share[count - 1] >= top_p - 1e-6


def kept(logits, top_k: int, top_p: float) -> list[int]:
    """How many tokens each row keeps."""
    import torch

    from collabsim.models.engines.token_sampling import truncate

    scaled = logits - logits.amax(-1, keepdim=True)
    rows = len(logits)
    cut = truncate(scaled, torch.tensor([top_k] * rows), torch.tensor([top_p] * rows))
    left = torch.isfinite(cut)
    assert torch.equal(cut[left], scaled[left])
    return left.sum(-1).tolist()


def test_a_top_k_above_the_vocabulary_changes_nothing():
    logits = random_logits(2, 300)
    assert draw(logits, [PLAIN.replace(top_k=5000)] * 2, [0.3, 0.6]) == draw(logits, [PLAIN] * 2, [0.3, 0.6])


def test_ties_do_not_let_more_than_top_k_through():
    import torch

    assert kept(torch.zeros(2, 500), top_k=3, top_p=1.0) == [3, 3]


def test_a_row_is_drawn_alike_beside_any_others():
    logits = random_logits(6, 2000)
    settings = [PLAIN, PLAIN.replace(top_p=0.5), PLAIN.replace(top_k=9), Sampling(temperature=0)] * 2
    settings, uniforms = settings[:6], [0.1, 0.5, 0.9, 0.3, 0.77, 0.2]
    together = draw(logits, settings, uniforms)
    alone = [draw(logits[row : row + 1], settings[row : row + 1], uniforms[row : row + 1]) for row in range(6)]
    assert together[0] == [ids[0] for ids, _ in alone]
    assert together[1] == pytest.approx([logprobs[0] for _, logprobs in alone], abs=1e-9)


@pytest.mark.parametrize("uniform", [0.0, 1 - 2**-53, math.nextafter(1, 0)])
@pytest.mark.parametrize("vocabulary", [5, 256, 257, 1000])
def test_the_ends_of_the_unit_interval_never_give_a_token_without_mass(uniform, vocabulary):
    import torch

    logits = random_logits(2, vocabulary)
    logits[:, [0, 1, vocabulary - 1]] = -torch.inf
    ids, logprobs = draw(logits, [PLAIN, PLAIN.replace(top_k=2)], [uniform] * 2)
    assert all(math.isfinite(logprob) for logprob in logprobs)
    assert not {0, 1, vocabulary - 1} & set(ids)


def test_greedy_takes_the_likeliest_with_the_logprob_of_the_plain_softmax():
    logits = random_logits(3, 700)
    ids, logprobs = draw(logits, [Sampling(temperature=0, top_p=0.1, top_k=2)] * 3, [0.0] * 3)
    assert ids == logits.argmax(-1).tolist()
    assert logprobs == pytest.approx(logits.double().log_softmax(-1).amax(-1).tolist(), abs=1e-6)


def test_a_tiny_temperature_is_greedy():
    logits = random_logits(3, 700)
    ids, logprobs = draw(logits, [Sampling(temperature=1e-30)] * 3, [0.99] * 3)
    assert ids == logits.argmax(-1).tolist()
    assert logprobs == pytest.approx([0.0] * 3)


def test_half_precision_logits_are_summed_in_single_precision():
    import torch

    logits = random_logits(1, 5000).bfloat16()
    ids, logprobs = draw(logits, [PLAIN], [0.4])
    expected = logits.double().log_softmax(-1)[0, ids[0]]
    assert logprobs[0] == pytest.approx(float(expected), abs=1e-5)
    assert logits.dtype == torch.bfloat16


def test_logits_that_are_not_numbers_give_a_logprob_that_is_not_a_number():
    logits = random_logits(2, 300)
    logits[0, 7] = math.nan
    _, logprobs = draw(logits, [PLAIN, PLAIN], [0.5, 0.5])
    assert not math.isfinite(logprobs[0])
    assert math.isfinite(logprobs[1])
