"""Next tokens for a batch of rows, each with its own settings and its own random number.

In: logits, one row each, the rows' `Sampling` and one uniform number per row. Out: token ids and their log-probabilities
under the distribution that was sampled (tempered, cut to top-k and top-p, renormalised); for a greedy row, under the
plain softmax. A row's result depends on its own logits, settings and number only, never on its neighbours. Imports torch:
import this module where an engine starts. Left out on purpose: penalties, min-p, beams.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from collabsim.request import Sampling

_CHUNK = 256
_BELOW_ONE = 1 - 1e-12
_WIDTHS = (64, 1024)
"""How many of the likeliest tokens are looked at for a top-p cut before the whole vocabulary is sorted."""


def draw_tokens(
    logits: Tensor, settings: Sequence[Sampling], uniforms: Sequence[float]
) -> tuple[list[int], list[float]]:
    """One token of each row.

    `logits` is [rows, vocabulary], of any float type; `uniforms` are in [0, 1) and play no part in greedy rows. A row
    whose logits are not numbers gets a log-probability that is not a number.
    """
    if logits.device.type == "mps":
        logits = logits.cpu()  # no float64 there, and the sums below need it
    logits = logits.float()
    place = logits.device
    temperature = [1.0 if setting.greedy else setting.temperature for setting in settings]
    # The largest logit goes first, so that the tiniest temperature cannot make infinity minus infinity.
    scaled = logits - logits.amax(-1, keepdim=True)
    scaled /= torch.tensor(temperature, device=place).unsqueeze(1)
    if cut := [row for row, setting in enumerate(settings) if _truncates(setting)]:
        limits = [min(settings[row].top_k or scaled.shape[-1], scaled.shape[-1]) for row in cut]
        masses = [settings[row].top_p for row in cut]
        scaled[cut] = truncate(scaled[cut], torch.tensor(limits, device=place), torch.tensor(masses, device=place))
    numbers = torch.tensor(uniforms, dtype=torch.float64, device=place).unsqueeze(1)
    sampled, total = _pick(scaled.exp(), numbers)
    greedy = torch.tensor([setting.greedy for setting in settings], device=place).unsqueeze(1)
    ids = torch.where(greedy, scaled.argmax(-1, keepdim=True), sampled)
    logprobs = scaled.gather(1, ids).double() - total.log()
    return ids.flatten().tolist(), logprobs.flatten().tolist()


def _truncates(setting: Sampling) -> bool:
    return not setting.greedy and (setting.top_p < 1 or setting.top_k > 0)


def _pick(weights: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """The token at which the running sum of a row's weights passes uniform * total, and the total: both [rows, 1].

    The sum runs in vocabulary order, so a small change of the logits moves the choice with a small probability. It is
    taken in two steps, over chunks and inside one: a float64 sum over a whole vocabulary is many times slower.
    """
    vocabulary = weights.shape[-1]
    chunks = torch.nn.functional.pad(weights, (0, -vocabulary % _CHUNK)).unflatten(-1, (-1, _CHUNK))
    sums = chunks.sum(-1).double()
    edges = sums.cumsum(-1)
    total = edges[:, -1:]
    target = torch.minimum(uniforms * total, total * _BELOW_ONE)
    chunk = torch.searchsorted(edges, target, right=True).clamp_(max=edges.shape[-1] - 1)
    inside = chunks[torch.arange(len(chunks), device=chunks.device), chunk.squeeze(1)].double().cumsum(-1)
    rest = target - (edges.gather(1, chunk) - sums.gather(1, chunk))
    rest = torch.minimum(rest.clamp_(min=0), inside[:, -1:] * _BELOW_ONE)
    token = torch.searchsorted(inside, rest, right=True)
    return (chunk * _CHUNK + token).clamp_(max=vocabulary - 1), total


def truncate(scaled: Tensor, top_k: Tensor, top_p: Tensor) -> Tensor:
    """Logits of rows with -inf for every token outside the `top_k` likeliest and the nucleus of mass `top_p` among them.

    `scaled` is [rows, vocabulary], `top_k` (from 1 to the size of the vocabulary, which is no limit) and `top_p` are
    [rows]. The nucleus is the shortest list of likeliest tokens whose mass reaches `top_p`, the token that reaches it
    included. Exactly `top_k` tokens stay also where logits tie.
    """
    vocabulary = scaled.shape[-1]
    result = torch.full_like(scaled, -torch.inf)
    pending = torch.arange(len(scaled), device=scaled.device)
    for width in (*(width for width in _WIDTHS if width < vocabulary), vocabulary):
        rows, limit, share = scaled[pending], top_k[pending].unsqueeze(1), top_p[pending].unsqueeze(1).double()
        values, order = rows.topk(width)
        weights = values.double().exp() * (torch.arange(width, device=scaled.device) < limit)
        shown = limit <= width
        mass = torch.where(shown, weights.sum(-1, keepdim=True), _mass(rows, needed=not bool(shown.all())))
        kept = (weights.cumsum(-1) - weights < share * mass) & (weights > 0)
        # Without a limit in sight, the nucleus is known to end here only if something was left out.
        done = (shown | ((limit >= vocabulary) & ~kept[:, -1:])).squeeze(1)
        values = values.masked_fill(~kept, -torch.inf)
        result[pending[done]] = result[pending[done]].scatter(1, order[done], values[done])
        pending = pending[~done]
        if not len(pending):
            break
    return result


def _mass(rows: Tensor, needed: bool) -> Tensor:
    """Sum of the exponentials of whole rows, [rows, 1] in float64; zeros where nobody needs it."""
    if not needed:
        return torch.zeros(len(rows), 1, dtype=torch.float64, device=rows.device)
    return rows.exp().sum(-1, keepdim=True, dtype=torch.float64)
