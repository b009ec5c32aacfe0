"""Several models that write one text together, token by token.

In: members (a model, its persona, its template flags) and a rule that combines their next-token distributions. Out: a model
like any other to the generation store: its identity is that of rule and members, so an ensemble's text is generated once,
in single flight, and found again without loading anything. Each member reads its own prompt (persona, template) and keeps
its own keys and values. Temperature, top-k and top-p act on the combined distribution. Left out on purpose: the rules
(protocols have them), members behind servers, batching of texts (each step of each member is one row).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from collabsim.episode import Reply, Tokens, Usage
from collabsim.errors import CallError, ProtocolError
from collabsim.identity import identity_of, revision_of
from collabsim.models.engines.engine import Generation
from collabsim.models.engines.logits import LogitModel, LogitSession, end_ids, logit_model, shared_ids
from collabsim.models.engines.logprob_sampling import draw_token, normalised
from collabsim.models.engines.reply_ending import Endings
from collabsim.models.local.template import plan_room
from collabsim.request import Messages, Request, Sampling
from collabsim.seeds import digest

if TYPE_CHECKING:
    from collabsim.models.engines.logits import Logprobs


class Combine(Protocol):
    """How the next-token distributions of the members become one."""

    @property
    def recipe(self) -> Any:
        """Everything that the result depends on besides the members, as JSON: part of the store's key."""

    def __call__(self, rows: Logprobs) -> Logprobs:
        """Scores of the next token, [vocabulary], up to a constant, from the members' log-probabilities
        [members, vocabulary], each row normalised. -inf forbids a token."""


@dataclass(frozen=True, slots=True)
class Member:
    """One model of an ensemble, and how it is spoken to."""

    model: Any
    """A chat model with `identity` and `logit_model()`."""
    persona: Messages = ()
    template: Mapping[str, Any] = field(default_factory=dict)


class JointModel:
    """See the module; a `TypedModel`. Two ensembles of one rule and equal members in one order are one model."""

    def __init__(self, members: Sequence[Member], combine: Combine) -> None:
        self.members = tuple(members)
        self.combine = combine

    @cached_property
    def identity(self) -> str:
        """Content of rule and members. Raises `ProtocolError` for a member without an identity."""
        parts = []
        for member in self.members:
            identity = identity_of(member.model)
            if identity is None:
                if not callable(getattr(member.model, "logit_model", None)):
                    logit_model(member.model)  # says what is wrong with it
                raise ProtocolError(
                    "a seat that is being trained cannot write a text together with others: its own tokens would not be "
                    "known; train it under another protocol"
                )
            parts.append([identity, list(member.persona), dict(member.template)])
        return digest(["joint", self.combine.recipe, parts])

    @property
    def revision(self) -> str:
        """The revisions of the members' weights; `0` when none is trained."""
        revisions = [revision_of(member.model) for member in self.members]
        return "0" if set(revisions) == {"0"} else "+".join(revisions)

    async def areply(self, request: Request) -> Reply:
        """One text of the ensemble.

        Raises `ProtocolError` for vocabularies that do not fit together, `ContextOverflowError` before any step when a
        member's prompt and `max_tokens` do not fit its window, `CallError` when a member fails.
        """
        dropped = threading.Event()
        try:
            return await asyncio.to_thread(self._reply, request, dropped)
        finally:
            dropped.set()  # a cancelled run leaves its thread behind, which ends at its next token

    async def ainvoke(self, *_: Any, **__: Any) -> Any:
        """Refused: an ensemble answers typed requests only."""
        raise CallError("an ensemble is asked through `ask_joint`; LangChain's interface is not served")

    def _reply(self, request: Request, dropped: threading.Event) -> Reply:
        started, revision = time.perf_counter(), self.revision
        models = [logit_model(member.model) for member in self.members]
        prompts = [
            model.render(member.persona + request.messages, member.template)
            for model, member in zip(models, self.members, strict=True)
        ]
        stop = tuple(dict.fromkeys((*request.sampling.stop, *(string for model in models for string in model.stop))))
        writing = _Writing(models, prompts, self.combine, request.sampling.replace(stop=stop), request.seed)
        generation = writing.write(dropped)
        parts = tuple(Usage(len(prompt), len(generation.ids)) for prompt in prompts)
        return Reply(
            text=generation.text,
            finish=generation.finish,
            usage=Usage(sum(map(len, prompts)), len(generation.ids) * len(prompts)),
            tokens=Tokens(prompts[0], generation.ids, generation.logprobs),
            revision=revision,
            seconds=time.perf_counter() - started,
            parts=parts,
        )


class _Writing:
    """One text in progress."""

    def __init__(
        self,
        models: Sequence[LogitModel],
        prompts: Sequence[tuple[int, ...]],
        combine: Combine,
        sampling: Sampling,
        seed: int,
    ) -> None:
        vocabularies = [model.vocabulary for model in models]
        self._allowed = np.fromiter(sorted(shared_ids(vocabularies)), dtype=np.int64)
        for model, prompt in zip(models, prompts, strict=True):
            plan_room(len(prompt), sampling.max_tokens, model.window)
        self._sessions = [model.session(prompt) for model, prompt in zip(models, prompts, strict=True)]
        self._endings = Endings(vocabularies[0].tokenizer, end_ids(vocabularies))
        self._combine = combine
        self._sampling = sampling
        # The engine's own noise: one uniform number a token, from the request's seed alone.
        self._noise = np.random.Generator(np.random.PCG64(seed & (1 << 64) - 1))

    def write(self, dropped: threading.Event) -> Generation:
        ids: list[int] = []
        logprobs: list[float] = []
        while not dropped.is_set():
            place, logprob = self._next(ids[-1:])
            ids.append(place)
            logprobs.append(logprob)
            ended = self._endings.finished(ids, logprobs, self._sampling)
            if ended is not None:
                return ended
        raise CallError("the ensemble's text was dropped before its end")

    def _next(self, last: Sequence[int]) -> tuple[int, float]:
        """The next token, drawn among the shared ids only."""
        rows = normalised(np.stack([self._step(session, last) for session in self._sessions]))
        scores = self._combine(rows)
        if scores.shape != self._allowed.shape or not np.isfinite(scores.max()):
            raise CallError("the members' distributions exclude each other: no token is possible for all of them")
        uniform = 0.0 if self._sampling.greedy else float(self._noise.random())
        place, logprob = draw_token(normalised(scores), self._sampling, uniform)
        return int(self._allowed[place]), logprob

    def _step(self, session: LogitSession, last: Sequence[int]) -> Logprobs:
        return session.step(last)[self._allowed]
