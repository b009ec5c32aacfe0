"""The policy as a member of a pool: a chat model that speaks with the weights of the moment.

In: requests, as for any local model. Out: replies with exact ids, log-probabilities of the sampled distribution and the
revision that spoke. Calls wait while weights are replaced. While it learns, the model has no identity, so that no store
keeps its replies on disk; a frozen one has the content of its weights for identity. Left out on purpose: how weights get
into the engine (see `policy.py`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from pydantic import PrivateAttr

from collabsim.episode import Reply
from collabsim.errors import CallError
from collabsim.models import LocalModel
from collabsim.models.engines import Engine
from collabsim.request import Request

from .call_gate import Gate


class Voice(Protocol):
    """What the model needs of its policy."""

    gate: Gate
    """Closed while weights are replaced."""
    engine: Engine

    @property
    def revision(self) -> str:
        """Version of the weights in the engine."""

    @property
    def problem(self) -> str | None:
        """Why the engine must not be asked now, or None."""


class PolicyModel(LocalModel):
    """See `Policy.model` and `Policy.frozen`; not made by hand."""

    _policy: Any = PrivateAttr(default=None)
    _frozen_identity: str = PrivateAttr(default="")
    _frozen_at: str = PrivateAttr(default="")
    """The engine's revision when it was frozen; empty for the model that learns."""

    @property
    def identity(self) -> str:
        """Empty while the policy learns; content of weights, tokenizer, engine and dtype of a frozen one."""
        return self._frozen_identity

    @property
    def identity_of_files(self) -> str:
        """That of a `LocalModel` with the same settings: what the policy is before it learns."""
        return LocalModel(**{name: getattr(self, name) for name in self.model_fields_set}).identity

    @property
    def revision(self) -> str:
        """Version of the weights in the engine; `0` for a frozen model, whose identity says it all."""
        return "0" if self._frozen_at else str(self._policy.revision)

    def running_engine(self) -> Engine:
        """The policy's own engine; other seats with the same start never share it."""
        engine: Engine = self._policy.engine
        return engine

    async def areply(self, request: Request) -> Reply:
        """One reply; waits while weights are replaced.

        Raises what `LocalModel.areply` raises, and `CallError` when the engine does not speak with the weights that this
        model stands for: after a push that failed, after a restore or an update that was not pushed, or when weights
        have changed since it was frozen.
        """
        policy: Voice = self._policy
        async with policy.gate.call():
            self._check(policy)
            reply = await super().areply(request)
            self._check(policy)
        return replace(reply, revision=self.revision) if self._frozen_at else reply

    def _check(self, policy: Voice) -> None:
        if problem := policy.problem:
            raise CallError(problem)
        if self._frozen_at not in ("", policy.revision):
            raise CallError(
                f"expected the policy at revision {self._frozen_at}, where it was frozen, it is at {policy.revision} now; "
                "freeze it again"
            )

    @property
    def _llm_type(self) -> str:
        return "collabsim-policy"
