"""The base of our own chat models: typed requests inside, LangChain's interface outside.

In: LangChain messages and keywords, or a `Request`. Out: LangChain results, or a `Reply`. A model implements `areply`
and `identity`; `invoke`, `ainvoke`, `batch` and the rest follow. Left out on purpose: streaming and tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from collabsim.episode import Reply
from collabsim.loop import run_sync
from collabsim.request import Request, Sampling, as_messages

_KEYWORDS = ("temperature", "top_p", "top_k", "max_tokens")


class TypedChatModel(BaseChatModel):
    """A chat model that answers typed requests itself; see `reply.TypedModel` for the contract."""

    @property
    def identity(self) -> str:
        """Content identity, known without loading anything."""
        raise NotImplementedError

    async def areply(self, request: Request) -> Reply:
        """One reply. Raises `CallError` for infrastructure failures only."""
        raise NotImplementedError

    def _default_seed(self) -> int:
        """The seed of a call through LangChain that names none."""
        return 0

    def _request(self, messages: list[BaseMessage], stop: list[str] | None, keywords: Mapping[str, Any]) -> Request:
        """LangChain's arguments as a request; settings that are not given have the defaults of `Sampling`."""
        given = {name: keywords[name] for name in _KEYWORDS if keywords.get(name) is not None}
        seed = keywords.get("seed")
        return Request(
            as_messages(messages),
            Sampling().replace(stop=tuple(stop or ()), **given),
            seed=self._default_seed() if seed is None else int(seed),
        )

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 (LangChain's signature)
        **kwargs: Any,
    ) -> ChatResult:
        return as_chat_result(run_sync(self.areply(self._request(messages, stop, kwargs))))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,  # noqa: ARG002 (LangChain's signature)
        **kwargs: Any,
    ) -> ChatResult:
        return as_chat_result(await self.areply(self._request(messages, stop, kwargs)))

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"identity": self.identity}


def as_chat_result(reply: Reply) -> ChatResult:
    """A reply in LangChain's words, with usage and finish reason where its tools look for them."""
    read, written = reply.usage.prompt_tokens, reply.usage.completion_tokens
    metadata = {"finish_reason": reply.finish, "model_name": reply.served_by}
    message = AIMessage(
        reply.text,
        usage_metadata={"input_tokens": read, "output_tokens": written, "total_tokens": read + written},
        response_metadata={name: value for name, value in metadata.items() if value is not None},
    )
    return ChatResult(generations=[ChatGeneration(message=message)])
