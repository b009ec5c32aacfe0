from __future__ import annotations

from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.exceptions import ContextOverflowError as LangChainOverflow
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import (
    FakeListChatModel,
    FakeMessagesListChatModel,
    GenericFakeChatModel,
    ParrotFakeChatModel,
)
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda

from collabsim.errors import CallError, ConfigError, ContextOverflowError
from collabsim.models.chat.langchain_model import areply
from collabsim.models.chat.reply import reply_of
from collabsim.request import Message, Request, Sampling

PROMPT = (Message("system", "Be brief."), Message("user", "hello"))


def request(seed: int = 5, **sampling: Any) -> Request:
    return Request(PROMPT, Sampling().replace(**sampling), seed)


class Recording(BaseChatModel):
    """Keeps what its generate method is called with."""

    seen: list[dict[str, Any]] = []  # noqa: RUF012 (pydantic copies it)

    @property
    def _llm_type(self) -> str:
        return "recording"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs) -> ChatResult:
        self.seen.append({"messages": [(m.type, m.content) for m in messages], "stop": stop, **kwargs, **self.fields()})
        return ChatResult(generations=[ChatGeneration(message=AIMessage("fine"))])

    def fields(self) -> dict[str, Any]:
        return {}


class WithFields(Recording):
    temperature: float = 1.0
    max_output_tokens: int = 7
    seed: int | None = None

    def fields(self) -> dict[str, Any]:
        return {"temperature": self.temperature, "max_output_tokens": self.max_output_tokens, "seed": self.seed}


class WithKeywords(Recording):
    def _generate(self, messages, stop=None, run_manager=None, temperature=1.0, seed=None) -> ChatResult:
        return super()._generate(messages, stop, run_manager, temperature=temperature, seed=seed)


class Answering(BaseChatModel):
    """Answers with one ready message, or raises."""

    message: Any

    @property
    def _llm_type(self) -> str:
        return "answering"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs) -> ChatResult:
        if isinstance(self.message, Exception):
            raise self.message
        generations = [ChatGeneration(message=self.message)] if self.message is not None else []
        return ChatResult(generations=generations)


@pytest.mark.parametrize(
    "fake",
    [
        FakeListChatModel(responses=["one", "two"]),
        FakeMessagesListChatModel(responses=[AIMessage("one"), AIMessage("two")]),
        GenericFakeChatModel(messages=iter(["one", "two"])),
    ],
    ids=lambda fake: type(fake).__name__,
)
async def test_langchains_fakes_go_on_from_call_to_call(fake):
    assert [(await areply(fake, request())).text for _ in range(2)] == ["one", "two"]


async def test_the_messages_arrive_with_their_roles():
    model = Recording()
    await areply(model, Request((*PROMPT, Message("assistant", "hi"), Message("user", "go on")), Sampling(), 0))
    assert model.seen[0]["messages"] == [("system", "Be brief."), ("human", "hello"), ("ai", "hi"), ("human", "go on")]


async def test_a_model_without_settings_is_called_without_them():
    model = Recording()
    await areply(model, request())
    assert model.seen == [{"messages": [("system", "Be brief."), ("human", "hello")], "stop": None}]


async def test_stop_sequences_are_always_passed():
    model = Recording()
    await areply(model, request(stop=("##", "END")))
    assert model.seen[0]["stop"] == ["##", "END"]


async def test_settings_that_a_model_has_as_fields_are_in_force_for_the_call_alone():
    model = WithFields()
    await areply(model, request(seed=9, temperature=0.2, max_tokens=33))
    seen = model.seen[0]
    assert (seen["temperature"], seen["max_output_tokens"], seen["seed"]) == (0.2, 33, 9)
    assert (model.temperature, model.max_output_tokens, model.seed) == (1.0, 7, None)


async def test_settings_that_a_model_names_as_keywords_are_passed():
    model = WithKeywords()
    await areply(model, request(seed=9, temperature=0.2))
    assert (model.seen[0]["temperature"], model.seen[0]["seed"]) == (0.2, 9)


async def test_a_greedy_request_is_the_same_for_every_seed():
    model = WithFields()
    for seed in (1, 2):
        await areply(model, request(seed=seed, temperature=0.0))
    assert model.seen[0] == model.seen[1]


@pytest.mark.parametrize(
    ("metadata", "finish"),
    [
        ({"finish_reason": "stop"}, "stop"),
        ({"finish_reason": "length"}, "length"),
        ({"finish_reason": "MAX_TOKENS"}, "length"),
        ({"finish_reason": "SAFETY"}, "content_filter"),
        ({"stop_reason": "end_turn"}, "stop"),
        ({"stop_reason": "max_tokens"}, "length"),
        ({"stop_reason": "refusal"}, "content_filter"),
        ({"done_reason": "length"}, "length"),
        ({"finish_reason": None}, "stop"),
        ({}, "stop"),
    ],
)
async def test_finish_reasons_of_several_vendors_are_understood(metadata, finish):
    assert (await areply(Answering(message=AIMessage("x", response_metadata=metadata)), request())).finish == finish


async def test_usage_and_server_are_kept():
    usage = {"input_tokens": 11, "output_tokens": 3, "total_tokens": 14}
    metadata = {"model_name": "big-1", "system_fingerprint": "fp"}
    reply = await areply(Answering(message=AIMessage("x", usage_metadata=usage, response_metadata=metadata)), request())
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (11, 3)
    assert reply.served_by == "big-1 fp"


async def test_only_the_text_of_content_blocks_is_the_reply():
    blocks = [
        {"type": "reasoning", "reasoning": "hm"},
        {"type": "text", "text": "one "},
        {"type": "text", "text": "two"},
    ]
    assert (await areply(Answering(message=AIMessage(blocks)), request())).text == "one two"


async def test_an_empty_text_is_a_reply():
    assert (await areply(Answering(message=AIMessage("")), request())).text == ""


@pytest.mark.parametrize("error", [RuntimeError("boom"), TimeoutError("boom"), KeyError("boom")])
async def test_an_exception_of_the_model_is_a_failed_call_with_its_cause(error):
    with pytest.raises(CallError, match="boom") as caught:
        await areply(Answering(message=error), request())
    assert type(caught.value.__cause__) is type(error)
    assert "Answering" in str(caught.value)


@pytest.mark.parametrize("error", [LangChainOverflow("x"), ValueError("prompt exceeds the context length of 512")])
async def test_a_prompt_that_is_too_long_is_an_overflow(error):
    with pytest.raises(ContextOverflowError):
        await areply(Answering(message=error), request())


async def test_our_own_errors_pass_unchanged():
    with pytest.raises(ConfigError, match="as it is"):
        await areply(Answering(message=ConfigError("as it is")), request())


async def test_a_model_that_generates_nothing_is_a_failed_call():
    with pytest.raises(CallError):
        await areply(Answering(message=None), request())


async def test_draws_are_not_answered_from_langchains_cache():
    from langchain_core.caches import InMemoryCache
    from langchain_core.globals import set_llm_cache

    model = Recording()
    set_llm_cache(InMemoryCache())
    try:
        for seed in range(3):
            await areply(model, request(seed))
    finally:
        set_llm_cache(None)
    assert len(model.seen) == 3


async def test_a_call_is_no_event_of_the_graph_that_asked_first():
    class Counter(BaseCallbackHandler):
        started = 0

        def on_chat_model_start(self, *args, **kwargs):
            self.started += 1

    async def node(_: str) -> str:
        return (await areply(FakeListChatModel(responses=["x"]), request())).text

    counter = Counter()
    assert await RunnableLambda(node).ainvoke("go", config={"callbacks": [counter]}) == "x"
    assert counter.started == 0


async def test_the_rest_of_collabsim_reaches_any_chat_model_by_one_door():
    assert (await reply_of(ParrotFakeChatModel(), request())).text == "hello"
