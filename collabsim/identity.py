"""Reads the identity of a chat model and the version of its weights.

In: any LangChain chat model. Out: strings that are known without loading anything. Left out on purpose: how an identity is
made; each model does that itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


def identity_of(model: BaseChatModel) -> str | None:
    """The `identity` that a model declares, or None: its generations are then kept in memory only."""
    identity = getattr(model, "identity", None)
    return identity if isinstance(identity, str) and identity else None


def revision_of(model: BaseChatModel) -> str:
    """The version of the model's weights; `0` for a model that is never trained."""
    return str(getattr(model, "revision", "0"))
