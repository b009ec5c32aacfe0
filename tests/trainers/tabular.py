"""A learner small enough to enumerate: a table of next-token logits by prompt and last token, in plain torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from collabsim.trainers.policy.token_row import TokenRow

from collabsim.episode import Reply, Tokens, Usage
from collabsim.request import Request

END = "<end>"
START = 0
"""Row of the table for the first token."""


class Tabular:
    """Logits [prompts, tokens + 1, tokens]; the last word is the end of a reply. Learner and chat model in one."""

    def __init__(self, words: Sequence[str], prompts: int = 1, *, dtype: Any = torch.float64, seed: int = 0) -> None:
        self.words = (*words, END)
        generator = torch.Generator().manual_seed(seed)
        size = (prompts, len(self.words) + 1, len(self.words))
        self.logits = torch.nn.Parameter(torch.randn(size, generator=generator, dtype=dtype))
        self.identity = "tabular"
        self.revision = "0"
        self.prompts: dict[str, int] = {}
        self.asked: list[Request] = []

    # ---- the learner

    def parameters(self) -> list[torch.nn.Parameter]:
        return [self.logits]

    def token_logprobs(self, rows: Sequence[TokenRow], temperature: float) -> list[torch.Tensor]:
        found = []
        for row in rows:
            before = [START, *(token + 1 for token in row.ids[:-1])]
            table = torch.log_softmax(self.logits[row.prompt_ids[0]][before] / temperature, dim=-1)
            found.append(table.gather(1, torch.tensor(row.ids)[:, None])[:, 0])
        return found

    def logprob(self, prompt: int, *ids: int) -> torch.Tensor:
        """Of a whole reply at temperature 1."""
        return self.token_logprobs([TokenRow((prompt,), ids)], 1.0)[0].sum()

    def gradient(self, value: torch.Tensor) -> torch.Tensor:
        (found,) = torch.autograd.grad(value, [self.logits], retain_graph=True)
        return found

    # ---- the chat model

    async def areply(self, request: Request) -> Reply:
        self.asked.append(request)
        key = request.messages[-1].content
        prompt = self.prompts.setdefault(key, len(self.prompts) % len(self.logits))
        generator = torch.Generator().manual_seed(request.seed)
        ids: list[int] = []
        logprobs: list[float] = []
        with torch.no_grad():
            while len(ids) < request.sampling.max_tokens and (not ids or self.words[ids[-1]] != END):
                before = ids[-1] + 1 if ids else START
                table = torch.log_softmax(self.logits[prompt, before] / request.sampling.temperature, dim=-1)
                ids.append(int(torch.multinomial(table.exp(), 1, generator=generator)))
                logprobs.append(float(table[ids[-1]]))
        return self.reply(prompt, ids, logprobs)

    def reply(self, prompt: int, ids: Sequence[int], logprobs: Sequence[float]) -> Reply:
        ended = self.words[ids[-1]] == END
        text = " ".join(self.words[token] for token in ids if self.words[token] != END)
        return Reply(
            text,
            finish="stop" if ended else "length",
            usage=Usage(1, len(ids)),
            tokens=Tokens((prompt,), tuple(ids), tuple(logprobs)),
            revision=self.revision,
        )

    async def ainvoke(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("collabsim asks typed models through areply")


class Noisy:
    """A frozen partner that says each of `words` with a probability, by the request's seed; counts what it generated."""

    def __init__(self, name: str, words: Mapping[str, float]) -> None:
        self.identity = f"noisy:{name}"
        self.revision = "0"
        self.words = dict(words)
        self.asked: list[Request] = []

    async def areply(self, request: Request) -> Reply:
        self.asked.append(request)
        generator = torch.Generator().manual_seed(request.seed)
        place = int(torch.multinomial(torch.tensor(list(self.words.values())), 1, generator=generator))
        return Reply(list(self.words)[place], usage=Usage(10, 3))

    async def ainvoke(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("collabsim asks typed models through areply")
