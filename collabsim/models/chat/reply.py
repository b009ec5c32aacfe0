"""The interface of a model to the rest of collabsim: an identity, a revision, and an answer to a typed request.

Any LangChain `BaseChatModel` will do. Models of our own (simulated ones, in-process engines) also offer `areply`, which
takes a `Request` and keeps token ids and log-probabilities; the rest are spoken to through LangChain's own interface.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from collabsim.episode import Reply
from collabsim.request import Request

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


@runtime_checkable
class TypedModel(Protocol):
    """A chat model that answers typed requests itself."""

    @property
    def identity(self) -> str:
        """Content identity: equal for equal weights, tokenizer, template and engine; known without loading anything."""

    async def areply(self, request: Request) -> Reply:
        """One reply. Raises `CallError` for infrastructure failures only. Runs on collabsim's background loop."""


async def reply_of(model: BaseChatModel, request: Request) -> Reply:
    """One reply of any chat model to a typed request. Raises `CallError` when the call itself fails."""
    if isinstance(model, TypedModel):
        return await model.areply(request)
    from collabsim.models.chat.langchain_model import areply

    return await areply(model, request)
