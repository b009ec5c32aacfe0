"""Turns a call of the learner into a row of training.

In: a call that was made during a rollout, with the exact tokens that the engine sampled. Out: a `Row` that holds these
ids and their log-probabilities. Text is never tokenised again. A learner that is called k times in a run gives k rows,
which share the run's advantage; they are never joined into one sequence, since the second prompt need not continue the first.
"""

from __future__ import annotations

import math

from collabsim.episode import Reply
from collabsim.errors import CallError, ConfigError
from collabsim.request import Request, Sampling

from .policy.token_row import TokenRow
from .records import Row


def make_row(request: Request, reply: Reply) -> Row:
    """The row of one call.

    Raises `ConfigError` when the reply was drawn from another distribution than the learner's own (greedy, top_p, top_k):
    its ratio would be wrong from the first step. Raises `CallError` when the reply does not carry its exact tokens.
    """
    check_sampling(request.sampling)
    tokens = reply.tokens
    if tokens is None or not tokens.prompt_ids or not tokens.ids:
        raise CallError("expected a learner's reply with its prompt ids and sampled ids, got none; use a local model")
    if len(tokens.ids) != len(tokens.logprobs) or not all(map(math.isfinite, tokens.logprobs)):
        raise CallError(
            f"expected one finite log-probability for each of {len(tokens.ids)} sampled ids, got {list(tokens.logprobs)[:8]}"
        )
    return Row(
        tokens=TokenRow(tokens.prompt_ids, tokens.ids),
        logprobs=tokens.logprobs,
        temperature=request.sampling.temperature,
        revision=reply.revision,
        draw=request.draw,
        finish=reply.finish,
    )


def check_sampling(sampling: Sampling) -> None:
    """Raises `ConfigError` for settings under which a learner does not sample from its own (tempered) distribution."""
    if sampling.greedy or sampling.top_p < 1 or sampling.top_k:
        raise ConfigError(
            "a learner samples from its full distribution: expected temperature > 0, top_p 1 and top_k 0, got "
            f"temperature {sampling.temperature}, top_p {sampling.top_p}, top_k {sampling.top_k}; change its sampling"
        )
