"""Models behind an OpenAI-compatible server, through langchain-openai.

In: model name, address, and how patient to be. Out: a chat model whose identity is known without a connection: a hash
of address, name and the user's `revision`. One retry layer (`call_failures.Retries`; the SDK's is off): lost connections,
timeouts, 408, 409, 429 and 5xx are retried with jitter, `Retry-After` is honoured, all within one budget of seconds;
everything else fails at once. Left out on purpose: token ids, log-probabilities, tools, the Responses API.

The server's own sampling defaults are never in force: temperature, top_p, max_tokens and seed are always sent. A seed
makes a server repeat itself at best, so reproducibility comes from the generation store.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from langchain_core.messages import AIMessage
from pydantic import ConfigDict, Field, PrivateAttr

from collabsim.episode import Reply
from collabsim.errors import PrerequisiteError
from collabsim.models.chat.call_failures import Retries
from collabsim.models.chat.langchain_model import as_reply
from collabsim.models.chat.typed_model import TypedChatModel
from collabsim.request import Request
from collabsim.seeds import SEED_BITS, digest

if TYPE_CHECKING:
    from langchain_openai.chat_models.base import BaseChatOpenAI

OPENAI_URL = "https://api.openai.com/v1"
KEY_VARIABLE = "OPENAI_API_KEY"


class ServerModel(TypedChatModel):
    """A model on an OpenAI-compatible server. What is part of the identity cannot be changed afterwards."""

    model_config = ConfigDict(extra="forbid")

    model: str = Field(min_length=1, frozen=True)
    """Name under which the server knows the model."""
    base_url: str = Field(default=OPENAI_URL, frozen=True)
    """Address up to and with `/v1`. The SDK's environment variables for it are not read."""
    revision: str = Field(default="0", frozen=True)
    """The user's word for the version that is served; change it when the server's weights change."""
    api_key_env: str = KEY_VARIABLE
    """Environment variable with the key, read at the first call. Sent to `base_url`, whatever that is."""
    timeout: float = Field(default=120.0, gt=0)
    """Seconds that one attempt may take."""
    retry_budget: float = Field(default=300.0, ge=0)
    """Seconds from the first attempt within which the last one must start; 0 means one attempt."""
    backoff: float = Field(default=0.5, gt=0)
    """Scale in seconds of the random exponential wait between attempts, and of the jitter added to `Retry-After`."""
    concurrency: int = Field(default=32, ge=1)
    """Calls in flight at a time, per event loop."""
    extra_body: dict[str, Any] = Field(default_factory=dict, frozen=True)
    """Further fields of the request's body, such as a server's own sampling settings. Part of the identity."""

    _lines: Any = PrivateAttr(default_factory=lambda: _Lines())
    _answered: bool = PrivateAttr(default=False)
    _served_by: str | None = PrivateAttr(default=None)
    _warned: bool = PrivateAttr(default=False)

    @property
    def identity(self) -> str:
        """H(base_url, model, revision), with `extra_body` where there is one."""
        parts: list[Any] = [self.base_url.rstrip("/"), self.model, self.revision]
        return f"server:{digest(parts + ([self.extra_body] if self.extra_body else []))}"

    async def areply(self, request: Request) -> Reply:
        """One reply. A cut or filtered text is a reply.

        Raises `ContextOverflowError` when the prompt is too long, `CallError` when the server refuses or stays
        unavailable for the whole budget, `PrerequisiteError` when the key is missing.
        """
        async with self._line() as chat:
            started = time.perf_counter()
            message = await self._asked(chat, request)
            reply = as_reply(message, self.revision, time.perf_counter() - started)
        self._answered = True
        self._notice(reply.served_by)
        return reply

    async def _asked(self, chat: BaseChatOpenAI, request: Request) -> AIMessage:
        """The server's message, after retries within the budget."""
        body, stop = self._body(request), list(request.sampling.stop) or None

        async def call() -> AIMessage:
            # No callbacks: see `langchain_model.areply`.
            return await chat.ainvoke(list(request.messages), config={"callbacks": []}, stop=stop, **body)

        return await Retries(self.retry_budget, self.backoff, lambda: self._answered).run(self._speaker, call)

    def _body(self, request: Request) -> dict[str, Any]:
        """Settings of one request. A greedy one is the same for every seed, as in the store's key."""
        sampling = request.sampling
        extra: dict[str, Any] = dict(self.extra_body)
        if sampling.top_k and not sampling.greedy:
            extra["top_k"] = sampling.top_k
        if sampling.template:
            extra["chat_template_kwargs"] = {**extra.get("chat_template_kwargs", {}), **sampling.template}
        body: dict[str, Any] = {
            "temperature": sampling.temperature,
            "top_p": 1.0 if sampling.greedy else sampling.top_p,
            "max_tokens": sampling.max_tokens,
            "seed": 0 if sampling.greedy else request.seed,
        }
        return {**body, "extra_body": extra} if extra else body

    @asynccontextmanager
    async def _line(self) -> AsyncIterator[BaseChatOpenAI]:
        """A free line to the server. Connections and limits belong to the running loop, so each loop has its own."""
        key = (asyncio.get_running_loop(), self.identity, self.timeout, self.concurrency, self.api_key_env)
        line = self._lines.get(key)
        if line is None:
            for old in [old for old in list(self._lines) if old[0].is_closed()]:
                self._lines.pop(old, None)
            line = self._lines[key] = _Line(self._client(), self.concurrency)
        async with line.free:
            yield line.chat

    def _client(self) -> BaseChatOpenAI:
        from langchain_openai import ChatOpenAI
        from langchain_openai.chat_models.base import BaseChatOpenAI
        from openai import DefaultAsyncHttpxClient

        # OpenAI's own models refuse `max_tokens` and want `max_completion_tokens`, which many other servers ignore.
        kind = ChatOpenAI if self._is_openai else BaseChatOpenAI
        return kind(
            model=self.model,
            base_url=self.base_url,
            api_key=self._key(),  # type: ignore[arg-type]
            timeout=self.timeout,
            max_retries=0,
            cache=False,
            disable_streaming=True,
            use_responses_api=False,
            # An own client: langchain-openai shares one among all models and loops, which breaks on a second loop.
            http_async_client=DefaultAsyncHttpxClient(timeout=self.timeout, proxy=os.environ.get("OPENAI_PROXY")),
            openai_proxy=None,
        )

    def _key(self) -> str:
        key = os.environ.get(self.api_key_env)
        if key:
            return key
        if self._is_openai or "api_key_env" in self.model_fields_set:
            raise PrerequisiteError(
                f"{self._speaker}: no key in the environment variable {self.api_key_env}; set it, or name another with "
                "the option api_key_env"
            )
        return "none"

    @property
    def _is_openai(self) -> bool:
        return (urlsplit(self.base_url).hostname or "") == urlsplit(OPENAI_URL).hostname

    @property
    def _speaker(self) -> str:
        return f"{self.model} at {self.base_url}"

    def _notice(self, served_by: str | None) -> None:
        """Warn, once, when what the server says of itself changes: it may not be the same model any more."""
        if served_by and self._served_by and served_by != self._served_by and not self._warned:
            self._warned = True
            warnings.warn(
                f"{self._speaker} was served by {self._served_by!r} and now by {served_by!r}; if the weights changed, "
                "give the new ones another `revision`",
                stacklevel=2,
            )
        self._served_by = served_by or self._served_by

    @property
    def _llm_type(self) -> str:
        return "collabsim-server"

    def _default_seed(self) -> int:
        return random.SystemRandom().getrandbits(SEED_BITS)  # calls outside of a run are draws of their own


class _Lines(dict["_LineKey", "_Line"]):
    """Lines by loop and settings. A copy of a model, in this process or another, starts without any."""

    def __reduce__(self) -> tuple[type[_Lines], tuple[()]]:
        return _Lines, ()


_LineKey: TypeAlias = "tuple[asyncio.AbstractEventLoop, str, float, int, str]"


class _Line:
    """A client and a limit, both of one event loop."""

    __slots__ = ("chat", "free")

    def __init__(self, chat: BaseChatOpenAI, concurrency: int) -> None:
        self.chat = chat
        self.free = asyncio.Semaphore(concurrency)
