"""Log-probabilities of sampled tokens under a causal language model, with gradients.

In: a transformers model, rows (prompt ids and sampled ids), the temperature that they were sampled at. Out: one
log-probability and one entropy a sampled token. Rows are padded on the right; which positions count follows from the rows'
lengths, never from the value of an id, so an end token that doubles as padding is scored like any other. The head of the
model sees the positions of sampled tokens only: prompts and padding never become logits. What rows have in common from
their start on is read once where the model can (`token_trie`). Imports torch. Left out on purpose: losses, and how rows are
put into micro-batches.

Shapes are written behind names: N rows, W their padded width, T sampled tokens (of one row, or of all rows one after the
other), P places whose logits are computed (T, or fewer where rows share places), V entries of the vocabulary.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from collabsim.errors import ConfigError

from .token_row import TokenRow
from .token_trie import TokenTrie, trie_of, tries_of, worth_sharing

_PADDING = 0
"""Any id that exists. With causal attention no counted position sees what stands to its right."""
_LONGEST = 4
"""Tokens of one trie as a multiple of the model's width: each meets all others under the mask, which from there on costs more
than the rest of a layer."""
_MASKED = ("sdpa", "eager")
"""Attention that takes any mask."""
_CHUNK = 256
"""Tokens whose entropies are computed at once: a temporary as large as all logits would double the memory."""


class Scores(NamedTuple):
    """What a model thinks of the sampled tokens of some rows: one tensor a row, as long as its `ids`."""

    logprobs: list[Tensor]
    """Natural logarithms, in float32, of the tempered distribution; with gradients where they are enabled."""
    entropies: list[Tensor]
    """Nats, of the same distribution; without gradients."""


def score_rows(model: Any, rows: Sequence[TokenRow], temperature: float = 1.0, *, share: bool = False) -> Scores:
    """Log-probabilities and entropies of the sampled tokens of `rows`, in one forward pass.

    `temperature` is the one of the rollout: logits are divided by it, so that at equal weights the importance ratio is 1.
    `share`: whether common starts may be read once, see `can_share`. Raises `ConfigError` for a temperature that is not above
    0, for rows without prompt or reply and for ids that the model does not have.
    """
    if not rows:
        return Scores([], [])
    vocabulary = int(model.get_input_embeddings().num_embeddings)
    _check(rows, temperature, vocabulary)
    logits_PV, places = _logits(model, rows, share)
    logprobs_PV = torch.log_softmax(logits_PV / temperature, dim=-1)
    entropies_P = _entropies(logprobs_PV.detach())
    lengths = [len(row.ids) for row in rows]
    places_T = torch.tensor([place for line in places for place in line], device=model.device)
    ids_T = torch.tensor([token for row in rows for token in row.ids], device=model.device)
    logprobs_T, entropies_T = logprobs_PV[places_T, ids_T], entropies_P[places_T]
    return Scores(list(logprobs_T.split(lengths)), list(entropies_T.split(lengths)))


def _logits(model: Any, rows: Sequence[TokenRow], share: bool) -> tuple[Tensor, list[list[int]]]:
    """Float32 logits [P, V], and for each row the places that predict its ids."""
    if share and len(rows) > 1 and max(len(row.prompt_ids) + len(row.ids) for row in rows) <= _window(model):
        tries = list(tries_of(rows, _LONGEST * int(model.config.get_text_config().hidden_size)))
        if worth_sharing(rows, [trie for _, trie in tries]):
            return _shared_logits(model, tries)
    logits_TV = _sampled_logits(model, rows)
    ends = torch.tensor([len(row.ids) for row in rows]).cumsum(0).tolist()
    return logits_TV, [list(range(end - len(row.ids), end)) for row, end in zip(rows, ends, strict=True)]


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
    """Float32 logits of all sampled tokens, row after row: [T, V]."""
    tokens = [[*row.prompt_ids, *row.ids[:-1]] for row in rows]  # nothing follows the last id
    width = max(map(len, tokens))
    padded_NW = [line + [_PADDING] * (width - len(line)) for line in tokens]
    places = [
        number * width + place
        for number, (row, line) in enumerate(zip(rows, tokens, strict=True))
        for place in range(len(row.prompt_ids) - 1, len(line))
    ]
    places_T = torch.tensor(places, device=model.device)
    with _head_sees_only(model, places_T):
        output = model(input_ids=torch.tensor(padded_NW, device=model.device), use_cache=False)
    return torch.as_tensor(output.logits).squeeze(0).float()


def _shared_logits(model: Any, tries: Sequence[tuple[list[int], TokenTrie]]) -> tuple[Tensor, list[list[int]]]:
    """As `_logits`, from tries; a place that several rows share becomes one line of logits."""
    width = max(len(trie.ids) for _, trie in tries)
    line_of: dict[int, int] = {}
    lines: dict[int, list[int]] = {}
    for number, (rows, trie) in enumerate(tries):
        for row, path in zip(rows, trie.places, strict=True):
            lines[row] = [line_of.setdefault(number * width + place, len(line_of)) for place in path]
    with _head_sees_only(model, torch.tensor(list(line_of), device=model.device)):
        output = model(**_inputs([trie for _, trie in tries], width, model), use_cache=False)
    return torch.as_tensor(output.logits).squeeze(0).float(), [lines[row] for row in sorted(lines)]


def _inputs(tries: Sequence[TokenTrie], width: int, model: Any) -> dict[str, Tensor]:
    """Tries as a padded batch; padding sees itself, lest a line without any weight become NaN."""
    ids_NW = torch.full((len(tries), width), _PADDING)
    positions_NW = torch.zeros((len(tries), width), dtype=torch.long)
    mask_N1WW = torch.eye(width, dtype=torch.bool).repeat(len(tries), 1, 1, 1)
    for number, trie in enumerate(tries):
        size = len(trie.ids)
        ids_NW[number, :size] = torch.tensor(trie.ids)
        positions_NW[number, :size] = torch.tensor(trie.positions)
        mask_N1WW[number, 0, :size, :size] = torch.from_numpy(trie.visible())
    if model.config.get_text_config()._attn_implementation == "eager":
        lowest = torch.finfo(model.dtype).min
        mask_N1WW = torch.zeros(mask_N1WW.shape, dtype=model.dtype).masked_fill(~mask_N1WW, lowest)
    inputs = {"input_ids": ids_NW, "position_ids": positions_NW, "attention_mask": mask_N1WW}
    return {name: tensor.to(model.device) for name, tensor in inputs.items()}


def can_share(model: Any) -> bool:
    """Whether this model reads a trie as it reads its rows: places count as told, and no branch sees another.

    Tried on three tokens and two branches: changing one must not change the other in a single bit (state-space layers and
    convolutions fail here), and both must be what the model says of the plain rows.
    """
    text_config = model.config.get_text_config()
    given = inspect.signature(model.forward).parameters
    if text_config._attn_implementation not in _MASKED or "position_ids" not in given:
        return False
    last = int(model.get_input_embeddings().num_embeddings) - 1
    one, other = ([TokenRow((1, 2, 3), (first, 1)), TokenRow((1, 2, 3), (0, 2))] for first in (last, last - 1))
    with torch.no_grad():
        (left_PV, places), (right_PV, _) = (_shared_logits(model, [([0, 1], trie_of(rows))]) for rows in (one, other))
        plain_TV = _sampled_logits(model, one)
    second_TV = left_PV[places[1]]
    tolerance = 1e-3 if left_PV.dtype == model.dtype else 0.1
    apart = torch.equal(second_TV, right_PV[places[1]])
    return apart and bool(torch.allclose(second_TV, plain_TV[2:], atol=tolerance, rtol=tolerance))


def _window(model: Any) -> float:
    """Longest row that every layer sees as a whole."""
    config = model.config.get_text_config()
    sliding = "sliding_attention" in (getattr(config, "layer_types", None) or ("sliding_attention",))
    return float((getattr(config, "sliding_window", None) if sliding else None) or "inf")


@contextmanager
def _head_sees_only(model: Any, places_P: Tensor) -> Iterator[None]:
    """Let the output embedding read the hidden states at `places_P` of the flattened batch.

    A hook, and not a call of the decoder followed by the head: what an architecture does between the two and afterwards
    (scaling, soft caps) stays its own.
    """

    def choose(_: Any, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        hidden, *others = inputs
        return (hidden.flatten(0, 1).index_select(0, places_P.to(hidden.device)).unsqueeze(0), *others)

    hook = model.get_output_embeddings().register_forward_pre_hook(choose)
    try:
        yield
    finally:
        hook.remove()


def _entropies(logprobs_PV: Tensor) -> Tensor:
    """Entropies in nats, [P]."""
    parts = [torch.special.entr(part.exp()).sum(-1) for part in logprobs_PV.split(_CHUNK)]
    return torch.cat(parts)
