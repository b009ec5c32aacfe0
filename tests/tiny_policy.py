"""What tests of the trainers share: prompts in ids, changes of weights, and calls by ids to a policy's engine."""

from __future__ import annotations

from collabsim.trainers.policy.token_row import TokenRow

from collabsim.models.engines.engine import TokenRequest
from collabsim.request import Sampling

GREEDY = Sampling(temperature=0, max_tokens=12)
WARM = Sampling(temperature=0.7, max_tokens=24)
SECONDS = 120


def prompt_of(length, salt=0):
    return (1, *((7 * place + 13 * salt) % 250 + 5 for place in range(length - 1)))


def answer(policy, prompt, sampling=GREEDY, seed=0):
    return policy.engine.submit(TokenRequest(prompt, sampling, seed)).result(SECONDS)


def sampled_rows(policy, count, sampling=WARM):
    """Rows of `count` replies of the engine to prompts of uneven lengths, and what the engine says they had."""
    prompts = [prompt_of(5 + 3 * number, salt=number) for number in range(count)]
    futures = [policy.engine.submit(TokenRequest(prompt, sampling, seed)) for seed, prompt in enumerate(prompts)]
    replies = [future.result(SECONDS) for future in futures]
    rows = [TokenRow(prompt, reply.ids) for prompt, reply in zip(prompts, replies, strict=True)]
    return rows, [reply.logprobs for reply in replies]


def disturb(learner, scale=0.05, seed=0):
    """Change every trainable weight, as an optimiser would."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in learner.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * scale)


def greedy_by_learner(learner, prompt, tokens):
    """The likeliest continuation, token after token, from the learner's scores of every candidate alone."""
    import torch

    vocabulary = learner.loaded.vocabulary
    ids = ()
    for _ in range(tokens):
        rows = [TokenRow(prompt + ids, (candidate,)) for candidate in range(vocabulary)]
        with torch.no_grad():
            scores = torch.cat(learner.token_logprobs(rows))
        ids = (*ids, int(scores.argmax()))
        if ids[-1] in learner.loaded.end_ids:
            break
    return ids


def gaps(learner, rows, spoken, temperature):
    """Distances between the learner's log-probabilities and those that an engine gave, over all tokens."""
    own = learner.token_logprobs(rows, temperature)
    return [
        abs(a - b) for mine, theirs in zip(own, spoken, strict=True) for a, b in zip(mine.tolist(), theirs, strict=True)
    ]
