"""The next token of one text, from log-probabilities in numpy.

In: log-probabilities, `Sampling`, one uniform number. Out: a token id and its log-probability under the distribution
that was sampled. The same rules as `token_sampling.py` (which works on batches in torch), for ensembles, whose members
need not be torch models. Left out on purpose: everything that is left out there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collabsim.request import Sampling

if TYPE_CHECKING:
    from collabsim.models.engines.logits import Logprobs


def normalised(scores: Logprobs) -> Logprobs:
    """`scores` plus the constant (per row) that makes their exponentials sum to 1; [vocabulary] or [rows, vocabulary]."""
    top = scores.max(-1, keepdims=True)
    result: Logprobs = scores - top - np.log(np.exp(scores - top).sum(-1, keepdims=True))
    return result


def draw_token(logprobs: Logprobs, sampling: Sampling, uniform: float) -> tuple[int, float]:
    """One token of `logprobs`, [vocabulary]; `uniform` in [0, 1) plays no part in a greedy draw.

    A greedy token's log-probability is that under the plain distribution; a sampled one's includes temperature, top-k and
    top-p. The token is the first at which the running sum in vocabulary order passes `uniform`.
    """
    if sampling.greedy:
        token = int(logprobs.argmax())
        return token, float(normalised(logprobs)[token])
    scaled = _truncated((logprobs - logprobs.max()) / sampling.temperature, sampling)
    weights = np.exp(scaled)
    edges = weights.cumsum()
    token = int(np.searchsorted(edges, uniform * edges[-1], side="right"))
    token = min(token, int(np.flatnonzero(weights)[-1]))  # the last edge, when rounding steps over it
    return token, float(scaled[token] - np.log(edges[-1]))


def _truncated(scaled: Logprobs, sampling: Sampling) -> Logprobs:
    """-inf outside the `top_k` likeliest and the shortest list of likeliest tokens among them with mass `top_p`."""
    if sampling.top_k <= 0 and sampling.top_p >= 1:
        return scaled
    order = np.argsort(-scaled, kind="stable")
    if sampling.top_k > 0:
        order = order[: sampling.top_k]
    weights = np.exp(scaled[order])
    before = weights.cumsum() - weights
    kept = order[before < sampling.top_p * weights.sum()]
    result = np.full_like(scaled, -np.inf)
    result[kept] = scaled[kept]
    return result
