"""Log-probabilities of sampled tokens under a causal language model, with gradients.

In: a transformers model, rows (prompt ids and sampled ids), the temperature that they were sampled at. Out: one
log-probability and one entropy a sampled token. Rows are padded on the right; which positions count follows from the rows'
lengths, never from the value of an id, so an end token that doubles as padding is scored like any other. The head of the
model sees the positions of sampled tokens only: prompts and padding never become logits. Imports torch. Left out on
purpose: losses, and how rows are put into micro-batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from collabsim.errors import ConfigError

from .rows import TokenRow

_PADDING = 0
"""Any id that exists. With causal attention no counted position sees what stands to its right."""
_CHUNK = 256
"""Tokens whose entropies are computed at once: a temporary as large as all logits would double the memory."""


class Scores(NamedTuple):
    """What a model thinks of the sampled tokens of some rows: one tensor a row, as long as its `ids`."""

    logprobs: list[Tensor]
    """Natural logarithms, in float32, of the tempered distribution; with gradients where they are enabled."""
    entropies: list[Tensor]
    """Nats, of the same distribution; without gradients."""


def score_rows(model: Any, rows: Sequence[TokenRow], temperature: float = 1.0) -> Scores:
    """Log-probabilities and entropies of the sampled tokens of `rows`, in one forward pass.

    `temperature` is the one of the rollout: logits are divided by it, so that at equal weights the importance ratio is 1.
    Raises `ConfigError` for a temperature that is not above 0, for rows without prompt or reply and for ids that the model
    does not have.
    """
    if not rows:
        return Scores([], [])
    vocabulary = int(model.get_input_embeddings().num_embeddings)
    _check(rows, temperature, vocabulary)
    lengths = [len(row.ids) for row in rows]
    ids = torch.tensor([token for row in rows for token in row.ids], device=model.device)
    logprobs = torch.log_softmax(_sampled_logits(model, rows) / temperature, dim=-1)
    picked = logprobs.gather(1, ids.unsqueeze(1)).squeeze(1)
    return Scores(list(picked.split(lengths)), list(_entropies(logprobs.detach()).split(lengths)))


def _check(rows: Sequence[TokenRow], temperature: float, vocabulary: int) -> None:
    if not temperature > 0:
        raise ConfigError(
            f"expected the temperature that the rows were sampled at, above 0, got {temperature}; greedy replies cannot be "
            "trained on"
        )
    for place, (prompt_ids, ids) in enumerate(rows):
        if not prompt_ids or not ids:
            raise ConfigError(
                f"row {place}: expected a prompt and a reply of at least one token each, got {len(prompt_ids)} and {len(ids)}"
            )
        if min(*prompt_ids, *ids) < 0 or max(*prompt_ids, *ids) >= vocabulary:
            raise ConfigError(f"row {place}: expected ids from 0 to {vocabulary - 1}, got one beyond; wrong tokenizer?")


def _sampled_logits(model: Any, rows: Sequence[TokenRow]) -> Tensor:
    """Float32 logits of all sampled tokens, row after row: [tokens, vocabulary]."""
    tokens = [[*row.prompt_ids, *row.ids[:-1]] for row in rows]  # nothing follows the last id
    width = max(map(len, tokens))
    padded = [line + [_PADDING] * (width - len(line)) for line in tokens]
    places = [
        number * width + place
        for number, (row, line) in enumerate(zip(rows, tokens, strict=True))
        for place in range(len(row.prompt_ids) - 1, len(line))
    ]
    chosen = torch.tensor(places, device=model.device)
    with _head_sees_only(model, chosen):
        output = model(input_ids=torch.tensor(padded, device=model.device), use_cache=False)
    return torch.as_tensor(output.logits).squeeze(0).float()


@contextmanager
def _head_sees_only(model: Any, places: Tensor) -> Iterator[None]:
    """Let the output embedding read the hidden states at `places` of the flattened batch.

    A hook, and not a call of the decoder followed by the head: what an architecture does between the two and afterwards
    (scaling, soft caps) stays its own.
    """

    def choose(_: Any, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        hidden, *others = inputs
        return (hidden.flatten(0, 1).index_select(0, places).unsqueeze(0), *others)

    hook = model.get_output_embeddings().register_forward_pre_hook(choose)
    try:
        yield
    finally:
        hook.remove()


def _entropies(logprobs: Tensor) -> Tensor:
    """Entropy of each row of [tokens, vocabulary], in nats."""
    parts = [torch.special.entr(part.exp()).sum(-1) for part in logprobs.split(_CHUNK)]
    return torch.cat(parts)
