from __future__ import annotations

import asyncio
import copy
import pickle
import socket
import time
import warnings
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from models.openai_server import DROP, Completion, OpenAIServer, Scripted
from pydantic import ValidationError

from collabsim.errors import CallError, ContextOverflowError, PrerequisiteError
from collabsim.models.chat.reply import TypedModel, reply_of
from collabsim.models.chat.server import ServerModel
from collabsim.request import Message, Request, Sampling

PROMPT = (Message("system", "Be brief."), Message("user", "What is 2 + 2?"))


@pytest.fixture(autouse=True)
def without_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def server():
    with OpenAIServer() as running:
        yield running


def model(server: OpenAIServer, **options) -> ServerModel:
    return ServerModel(**{"model": "m", "base_url": server.base_url, "backoff": 0.01, **options})


def request(seed: int = 5, **sampling) -> Request:
    return Request(PROMPT, Sampling().replace(**sampling), seed)


def failing(status: int, message: str = "scripted", code: str | None = None, **headers: str) -> Scripted:
    body = {"error": {"message": message, "type": "scripted", "code": code}}
    return Scripted(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


async def test_a_reply_carries_text_finish_usage_and_who_served_it(server):
    server.answer = lambda messages, body: Completion("four of them", fingerprint="fp-1")
    reply = await model(server).areply(request())
    assert (reply.text, reply.finish) == ("four of them", "stop")
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (7, 3)
    assert reply.served_by == "served-model fp-1"
    assert reply.seconds > 0


async def test_sampling_is_always_sent_in_full(server):
    await model(server).areply(request(seed=77, temperature=0.3, top_p=0.9, max_tokens=21, stop=("##",)))
    body = server.requests[0].body
    assert {name: body[name] for name in ("model", "temperature", "top_p", "max_tokens", "seed", "stop")} == {
        "model": "m",
        "temperature": 0.3,
        "top_p": 0.9,
        "max_tokens": 21,
        "seed": 77,
        "stop": ["##"],
    }
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is 2 + 2?"},
    ]
    assert not {"top_k", "chat_template_kwargs", "max_completion_tokens"} & body.keys()


async def test_top_k_and_template_flags_are_sent_only_where_set(server):
    await model(server).areply(request(top_k=20, template={"enable_thinking": False}))
    assert server.requests[0].body["top_k"] == 20
    assert server.requests[0].body["chat_template_kwargs"] == {"enable_thinking": False}


async def test_greedy_requests_are_equal_whatever_their_seed(server):
    for seed in (1, 2):
        await model(server).areply(request(seed=seed, temperature=0.0, top_p=0.5, top_k=3))
    assert server.requests[0].body == server.requests[1].body
    assert server.requests[0].body["temperature"] == 0


async def test_extra_fields_of_the_body_are_sent_and_are_part_of_the_identity(server):
    plain, extra = model(server), model(server, extra_body={"repetition_penalty": 1.1})
    await extra.areply(request())
    assert server.requests[0].body["repetition_penalty"] == 1.1
    assert plain.identity != extra.identity


async def test_langchains_global_cache_does_not_answer_for_the_server(server):
    from langchain_core.caches import InMemoryCache
    from langchain_core.globals import set_llm_cache

    set_llm_cache(InMemoryCache())
    try:
        await model(server).areply(request())
        await model(server).areply(request())
    finally:
        set_llm_cache(None)
    assert len(server.requests) == 2


@pytest.mark.parametrize("finish", ["length", "content_filter"])
async def test_cut_and_filtered_texts_are_replies(server, finish):
    server.answer = lambda messages, body: Completion("half of", finish=finish)
    reply = await model(server).areply(request())
    assert (reply.text, reply.finish) == ("half of", finish)
    assert len(server.requests) == 1


async def test_a_null_text_is_an_empty_reply(server):
    server.answer = lambda messages, body: Completion(None, finish="content_filter")
    assert (await model(server).areply(request())).text == ""


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
async def test_passing_failures_are_retried(server, status):
    server.script.extend([failing(status), failing(status)])
    reply = await model(server).areply(request())
    assert reply.text.startswith("Answer: ")
    assert len(server.requests) == 3


async def test_a_dropped_connection_is_retried(server):
    server.script.extend([DROP, DROP])
    await model(server).areply(request())
    assert len(server.requests) == 3


async def test_a_timeout_is_retried(server):
    server.script.append(Scripted(200, delay=1.0))
    await model(server, timeout=0.2).areply(request())
    assert len(server.requests) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_refusals_fail_at_once(server, status):
    server.script.extend([failing(status, "no such thing")] * 3)
    with pytest.raises(CallError, match="no such thing") as caught:
        await model(server).areply(request())
    assert not isinstance(caught.value, ContextOverflowError)
    assert len(server.requests) == 1


async def test_a_used_up_quota_fails_at_once(server):
    server.script.extend([failing(429, "you exceeded your current quota", code="insufficient_quota")] * 2)
    with pytest.raises(CallError, match="quota"):
        await model(server).areply(request())
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (400, "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens", None),
        (400, "too long", "context_length_exceeded"),
        (400, "the request exceeds the available context size, try increasing it", None),
        (422, "`inputs` tokens + `max_new_tokens` must be <= 4096", None),
        (500, "context window exceeded", None),
    ],
)
async def test_a_prompt_that_is_too_long_is_an_overflow_at_once(server, status, message, code):
    server.script.append(failing(status, message, code))
    with pytest.raises(ContextOverflowError, match="max_tokens"):
        await model(server).areply(request())
    assert len(server.requests) == 1


async def test_a_rate_limit_that_mentions_tokens_is_no_overflow(server):
    server.script.append(failing(429, "too many tokens per minute"))
    await model(server).areply(request())
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "body", ["<html>busy</html>", {"error": {"message": "inside a 200"}}, {"choices": []}, {"choices": None}]
)
async def test_a_success_without_a_completion_is_a_failed_call(server, body):
    headers = {"Content-Type": "text/html"} if isinstance(body, str) else {}
    server.script.append(Scripted(200, body, headers))
    with pytest.raises(CallError):
        await model(server).areply(request())


async def waited(server, scripted: Scripted, **options) -> float:
    server.script.append(scripted)
    await model(server, **options).areply(request())
    first, second = server.requests
    return second.at - first.at


async def test_retry_after_in_seconds_is_honoured(server):
    assert 1.0 <= await waited(server, failing(429, retry_after="1")) < 10


async def test_retry_after_in_milliseconds_is_honoured(server):
    assert 0.3 <= await waited(server, failing(503, retry_after_ms="300", retry_after="60")) < 20


async def test_retry_after_as_a_date_is_honoured(server):
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=3), usegmt=True)
    assert 1.0 < await waited(server, failing(429, retry_after=date)) < 20


@pytest.mark.parametrize("value", ["soon", "", "-3", "Wed, 21 Oct 2015 07:28:00 GMT"])
async def test_a_retry_after_that_says_nothing_useful_does_not_hold_up(server, value):
    assert await waited(server, failing(429, retry_after=value)) < 10


async def test_retry_after_may_exceed_the_timeout_of_an_attempt(server):
    assert await waited(server, failing(429, retry_after="1"), timeout=0.5) >= 1.0


async def test_retry_after_beyond_the_budget_fails_without_waiting(server):
    server.script.append(failing(429, "slow down", retry_after="120"))
    started = time.monotonic()
    with pytest.raises(CallError, match=r"1 attempts.*wait 120 s"):
        await model(server, retry_budget=60.0).areply(request())
    assert time.monotonic() - started < 5
    assert len(server.requests) == 1


async def test_retries_end_with_the_budget(server):
    server.script.extend([failing(503)] * 1000)
    started = time.monotonic()
    with pytest.raises(CallError, match="attempts"):
        await model(server, retry_budget=0.5).areply(request())
    assert time.monotonic() - started < 20
    assert len(server.requests) > 2


async def test_a_budget_of_nothing_is_one_attempt(server):
    server.script.extend([failing(503)] * 3)
    with pytest.raises(CallError):
        await model(server, retry_budget=0.0).areply(request())
    assert len(server.requests) == 1


async def test_an_address_where_nobody_listens_fails_after_a_short_while(monkeypatch):
    monkeypatch.setattr("collabsim.models.chat.call_failures.FIRST_CONTACT_SECONDS", 0.3)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = time.monotonic()
    with pytest.raises(CallError, match=f"127.0.0.1:{port}"):
        await ServerModel(model="m", base_url=f"http://127.0.0.1:{port}/v1", backoff=0.05).areply(request())
    assert time.monotonic() - started < 5


async def test_concurrency_is_limited_per_model(server):
    server.answer = lambda messages, body: Completion("x", delay=0.2)
    limited = model(server, concurrency=3)
    await asyncio.gather(*(limited.areply(request(seed)) for seed in range(8)))
    assert server.most_in_flight == 3


def test_one_model_serves_several_event_loops_in_turn(server):
    shared = model(server, concurrency=1)

    async def twice():
        return await asyncio.gather(shared.areply(request(1)), shared.areply(request(2)))

    first, second = asyncio.run(twice()), asyncio.run(twice())
    assert [reply.text for reply in first] == [reply.text for reply in second]


async def test_a_change_of_the_served_model_warns_once(server):
    prints = iter(["fp-1", "fp-1", "fp-2", "fp-3"])
    server.answer = lambda messages, body: Completion("x", fingerprint=next(prints))
    watched = model(server)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for seed in range(4):
            await watched.areply(request(seed))
    said = [str(warning.message) for warning in caught if "revision" in str(warning.message)]
    assert len(said) == 1
    assert "fp-1" in said[0]
    assert "fp-2" in said[0]


async def test_the_key_comes_from_the_environment(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "one")
    monkeypatch.setenv("MY_KEY", "two")
    await model(server).areply(request())
    await model(server, api_key_env="MY_KEY").areply(request())
    assert [received.headers["authorization"] for received in server.requests] == ["Bearer one", "Bearer two"]


async def test_a_missing_key_is_fine_for_other_servers(server):
    assert (await model(server).areply(request())).text


async def test_a_missing_key_that_was_asked_for_by_name_is_not(server):
    with pytest.raises(PrerequisiteError, match="MY_KEY"):
        await model(server, api_key_env="MY_KEY").areply(request())


async def test_openai_without_a_key_says_which_variable_to_set():
    with pytest.raises(PrerequisiteError, match="OPENAI_API_KEY"):
        await ServerModel(model="gpt-x").areply(request())


def test_openai_itself_is_sent_the_newer_name_of_max_tokens(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "one")
    payload = ServerModel(model="gpt-x")._client()._get_request_payload("hi", max_tokens=9)
    assert payload["max_completion_tokens"] == 9
    assert "max_tokens" not in payload


def test_identity_is_address_name_and_revision():
    def identity(**changes):
        return ServerModel(**{"model": "m", "base_url": "http://h/v1", **changes}).identity

    assert identity() == identity(base_url="http://h/v1/", timeout=3.0, concurrency=1, api_key_env="K")
    assert len({identity(), identity(model="n"), identity(base_url="http://g/v1"), identity(revision="2")}) == 4


def test_identity_needs_neither_a_key_nor_a_connection():
    assert ServerModel(model="gpt-x").identity.startswith("server:")


@pytest.mark.parametrize(
    "options", [{"timeout": 0}, {"concurrency": 0}, {"retry_budget": -1}, {"model": ""}, {"timout": 1}]
)
def test_impossible_options_are_refused(options):
    with pytest.raises(ValidationError):
        ServerModel(**{"model": "m", **options})


async def test_it_is_a_typed_model_of_the_rest_of_collabsim(server):
    typed = model(server, revision="7")
    assert isinstance(typed, TypedModel)
    assert (await reply_of(typed, request())).revision == "7"


async def test_langchains_doors_work_and_draw_afresh_without_a_seed(server):
    chat = model(server)
    messages = [await chat.ainvoke("hello") for _ in range(2)]
    messages.append(await asyncio.to_thread(chat.invoke, "hello"))
    assert all(message.text.startswith("Answer: ") for message in messages)
    assert len({received.body["seed"] for received in server.requests}) == 3


async def test_a_call_through_langchain_is_one_event(server):
    from langchain_core.callbacks import BaseCallbackHandler

    class Counter(BaseCallbackHandler):
        started = 0

        def on_chat_model_start(self, *args, **kwargs):
            self.started += 1

    counter = Counter()
    await model(server).ainvoke("hello", config={"callbacks": [counter]})
    assert counter.started == 1


async def test_a_used_model_can_be_copied_and_pickled(server):
    used = model(server, concurrency=1)
    await asyncio.gather(used.areply(request(1)), used.areply(request(2)))
    for twin in (copy.deepcopy(used), pickle.loads(pickle.dumps(used))):
        assert (await twin.areply(request(1))).text == (await used.areply(request(1))).text


async def test_a_copy_with_another_address_goes_there(server):
    with OpenAIServer(lambda messages, body: "from the other") as other:
        used = model(server)
        await used.areply(request())
        moved = used.model_copy(update={"base_url": other.base_url})
        assert (await moved.areply(request())).text == "from the other"
