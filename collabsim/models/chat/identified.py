"""A LangChain chat model with the identity that its user gives it.

In: any `BaseChatModel` and a word for what it is. Out: the same model, whose generations can be kept in the store: only
the user knows when two model objects, or the same one tomorrow, are one model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collabsim.arguments import checked
from collabsim.episode import Reply
from collabsim.errors import ConfigError
from collabsim.request import Request
from collabsim.seeds import digest

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


class IdentifiedModel:
    """A chat model and its identity; spoken to through LangChain's own interface."""

    def __init__(self, model: BaseChatModel, identity: str, revision: str = "0") -> None:
        self.model = model
        self.identity = digest(["langchain", type(model).__qualname__, identity])
        self.revision = revision

    async def areply(self, request: Request) -> Reply:
        """One reply of the model. Raises `CallError` when the call fails."""
        from collabsim.models.chat.langchain_model import areply

        return await areply(self.model, request)

    async def ainvoke(self, *args: Any, **keywords: Any) -> Any:
        """LangChain's own call, as it is."""
        return await self.model.ainvoke(*args, **keywords)


@checked()
def identified(model: BaseChatModel, identity: str, *, revision: str = "0") -> IdentifiedModel:
    """`model` under the name `identity`, so that the store keeps its generations between processes.

    Two models with one identity and revision are the same model to the store: change either when the weights change.
    Raises `ConfigError` for an empty identity.
    """
    if not identity.strip():
        raise ConfigError("identified: expected a name such as 'claude-opus-5', got an empty one")
    return IdentifiedModel(model, identity, revision)
