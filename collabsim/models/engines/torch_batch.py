"""A running batch of a transformers model: rows join between steps, and leave when they are finished.

In: `BatchRow`s. Out: their futures are resolved. `admit` reads prompts (in groups of similar length, padded on the left,
equal ones once) and samples a first token; `step` adds a token to every row. All rows end at the same column of the cache,
see `kv_cache.py`; mask and positions follow from the rows' lengths. Imports torch: import this module where an engine starts.
Left out on purpose: threads, queues, and what to do about errors: those of a forward pass come out as they are.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import torch
from numpy.random import PCG64, Generator
from torch import Tensor

from collabsim.errors import CallError
from collabsim.models.engines import kv_cache
from collabsim.models.engines.engine import Generation, TokenRequest
from collabsim.models.engines.reply_ending import Endings
from collabsim.models.engines.token_sampling import draw_tokens

READ_TOKENS = 4096
"""Prompt tokens read in one forward pass, padding included."""


@dataclass(eq=False, slots=True)
class BatchRow:
    """A request in progress."""

    request: TokenRequest
    future: Future[Generation] = field(default_factory=Future)
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    resolved: bool = False
    retried: bool = False
    """Whether its batch was already halved for want of memory."""
    noise: Generator = field(init=False)
    """One uniform number a token, from the request's seed alone."""

    def __post_init__(self) -> None:
        self.noise = Generator(PCG64(self.request.seed & (1 << 64) - 1))

    @property
    def known(self) -> int:
        """Tokens of prompt and reply so far."""
        return len(self.request.prompt_ids) + len(self.ids)

    @property
    def longest(self) -> int:
        """Tokens that the row may come to."""
        return len(self.request.prompt_ids) + self.request.sampling.max_tokens

    def uniform(self) -> float:
        """The next number in [0, 1); greedy rows need none."""
        return 0.0 if self.request.sampling.greedy else float(self.noise.random())

    def resolve(self, result: Generation | BaseException) -> None:
        """Hand the result over, once; a caller that has cancelled gets none."""
        if self.resolved:
            return
        self.resolved = True
        if not self.future.set_running_or_notify_cancel():
            return
        if isinstance(result, BaseException):
            self.future.set_exception(result)
        else:
            self.future.set_result(result)

    def dropped(self) -> bool:
        """Whether the caller has cancelled; whoever waits for the future is told."""
        if self.future.cancelled():
            self.resolve(CallError("cancelled"))
        return self.resolved


class RunningBatch:
    """Rows that are generated together by one causal language model of transformers."""

    def __init__(self, model: Any, endings: Endings) -> None:
        self.rows: list[BatchRow] = []
        self._model = model
        self._endings = endings
        self._layers = model.config.get_text_config().num_hidden_layers
        self._last_only = (
            {"logits_to_keep": 1} if "logits_to_keep" in inspect.signature(model.forward).parameters else {}
        )
        self._cache: Any = None

    def clear(self) -> None:
        """Forget all rows and free the cache."""
        self.rows, self._cache = [], None

    def drop_cancelled(self) -> None:
        """Let the rows go whose callers no longer wait."""
        self._keep([place for place, row in enumerate(self.rows) if not row.dropped()])

    def admit(self, rows: Sequence[BatchRow]) -> None:
        """Read the rows' prompts (and what they had sampled before an interruption), sample a token, take them in."""
        for group in reading_groups(rows):
            incoming = RunningBatch(self._model, self._endings)
            incoming._read(group)
            if incoming.rows and self.rows:
                kv_cache.join(self._cache, incoming._cache)
                self.rows += incoming.rows
            elif incoming.rows:
                self.rows, self._cache = incoming.rows, incoming._cache

    def step(self) -> None:
        """One more token for every row."""
        if self.rows:
            self._sample(self._forward([row.ids[-1:] for row in self.rows], [row.known for row in self.rows]))

    def _read(self, rows: list[BatchRow]) -> None:
        """Read the rows' texts, each text once however many rows have it: k samples of one prompt cost one reading."""
        self.rows, self._cache = rows, kv_cache.new_cache(self._layers)
        texts = [(*row.request.prompt_ids, *row.ids) for row in rows]
        places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        logits = self._forward(list(places), [len(text) for text in places])
        if len(places) < len(rows):
            owners = [places[text] for text in texts]
            kv_cache.hand_out(self._cache, owners)
            logits = logits[owners]
        self._sample(logits)

    def _sample(self, logits: Tensor) -> None:
        """Add a token to every row; let finished rows go."""
        settings = [row.request.sampling for row in self.rows]
        ids, logprobs = draw_tokens(logits, settings, [row.uniform() for row in self.rows])
        self._keep([place for place, row in enumerate(self.rows) if not self._ended(row, ids[place], logprobs[place])])

    def _forward(self, tokens: Sequence[Sequence[int]], lengths: Sequence[int]) -> Tensor:
        """Logits after the last token of each row, [rows, vocabulary]."""
        device = self._model.device
        width, columns = max(map(len, tokens)), max(lengths)
        ends = torch.tensor(lengths, device=device).unsqueeze(1)
        # Every row ends at the last column, so its first token stands at columns - length.
        mask = torch.arange(columns, device=device) >= columns - ends
        positions = (ends - torch.arange(width, 0, -1, device=device)).clamp_(min=0)
        padded = [[0] * (width - len(ids)) + list(ids) for ids in tokens]
        output = self._model(
            input_ids=torch.tensor(padded, device=device),
            attention_mask=mask,
            position_ids=positions,
            past_key_values=self._cache,
            use_cache=True,
            **self._last_only,
        )
        return torch.as_tensor(output.logits[:, -1])

    def _ended(self, row: BatchRow, token: int, logprob: float) -> bool:
        if not math.isfinite(logprob):
            row.resolve(
                CallError("the model gave logits that are not numbers; check its weights, or try dtype float32")
            )
            return True
        row.ids.append(token)
        row.logprobs.append(logprob)
        generation = self._endings.finished(row.ids, row.logprobs, row.request.sampling)
        if generation is not None:
            row.resolve(generation)
        return generation is not None

    def _keep(self, places: Sequence[int]) -> None:
        """Keep the rows at `places` (ascending): the last ones move into the gaps, unused columns on the left go."""
        count = len(places)
        if not count:
            self.clear()
        elif count < len(self.rows):
            gaps = sorted(set(range(count)).difference(places))
            moves = list(zip((place for place in places if place >= count), gaps, strict=True))
            for origin, gap in moves:
                self.rows[gap] = self.rows[origin]
            del self.rows[count:]
            # The last sampled token of a row is not in the cache yet.
            kv_cache.keep(self._cache, count, moves, max(row.known for row in self.rows) - 1)


def reading_groups(rows: Sequence[BatchRow]) -> Iterator[list[BatchRow]]:
    """The rows, longest first, in groups of at most `READ_TOKENS` padded tokens (or one row)."""
    group: list[BatchRow] = []
    for row in sorted(rows, key=lambda row: -row.known):
        if group and (len(group) + 1) * group[0].known > READ_TOKENS:
            yield group
            group = []
        group.append(row)
    if group:
        yield group
