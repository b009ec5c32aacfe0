"""The driver of vLLM's asynchronous engine, with a stand-in for the engine. The real one runs in test_vllm_processes."""

from __future__ import annotations

import asyncio
from concurrent.futures import CancelledError
from types import SimpleNamespace

import pytest

from collabsim.errors import CallError, ContextOverflowError
from collabsim.models.engines import vllm_engine, vllm_gpu
from collabsim.models.engines.engine import TokenRequest
from collabsim.models.engines.vllm_gpu import AsyncEngine
from collabsim.request import Sampling

SECONDS = 10
LETTERS = "abcdefgh"


class Tokenizer:
    def decode(self, ids, **_):
        return "".join(LETTERS[number] for number in ids)


def finished(ids, reason="length", stop_reason=None, text=""):
    logprobs = SimpleNamespace(logprobs=[-0.5] * len(ids))
    completion = SimpleNamespace(
        token_ids=ids, logprobs=logprobs, finish_reason=reason, stop_reason=stop_reason, text=text
    )
    return SimpleNamespace(finished=True, outputs=[completion])


class Llm:
    """Answers with `answer(prompt ids)`, which may raise; holds back the prompt (7,) until it is dropped."""

    def __init__(self, answer):
        self.model_config = SimpleNamespace(max_model_len=16)
        self.answer = answer
        self.dropped, self.names = [], []
        self.shut_down = 0

    def get_tokenizer(self):
        return Tokenizer()

    async def generate(self, prompt, params, number):
        self.names.append(number)
        try:
            yield SimpleNamespace(finished=False)
            if prompt["prompt_token_ids"] == [7]:
                await asyncio.Event().wait()
            yield self.answer(prompt["prompt_token_ids"])
        except asyncio.CancelledError:
            self.dropped.append(number)
            raise

    def shutdown(self):
        self.shut_down += 1


@pytest.fixture
def made(monkeypatch):
    monkeypatch.setattr(vllm_gpu, "sampling_params", lambda request: request.sampling)
    engines = []

    def make(answer=lambda ids: finished(ids)):
        llm = Llm(answer)
        engines.append(AsyncEngine("tiny", {"model": "x"}, revision="r1", start=lambda arguments: llm))
        return engines[-1], llm

    yield make
    for engine in engines:
        engine.close()


def ask(engine, *prompt, stop=(), max_tokens=4):
    return engine.submit(TokenRequest(prompt, Sampling(0.7, max_tokens=max_tokens, stop=stop), seed=1))


def test_the_finished_output_becomes_a_generation(made):
    engine, _ = made()
    reply = ask(engine, 0, 1, 2).result(SECONDS)
    assert (reply.ids, reply.logprobs, reply.text, reply.finish) == ((0, 1, 2), (-0.5,) * 3, "abc", "length")
    assert (engine.revision, engine.max_model_len) == ("r1", 16)


def test_an_end_token_is_among_the_ids_and_not_in_the_text(made):
    engine, _ = made(lambda ids: finished(ids, "stop"))
    reply = ask(engine, 0, 1, 2).result(SECONDS)
    assert (reply.ids, reply.text, reply.finish) == ((0, 1, 2), "ab", "stop")


def test_the_text_is_cut_before_the_first_stop_string(made):
    engine, _ = made(lambda ids: finished(ids, "stop", stop_reason="cd", text="ab"))
    assert ask(engine, 0, 1, 2, 3, stop=("zz", "cd")).result(SECONDS).text == "ab"


def test_a_stop_string_that_only_vllm_sees_leaves_the_text_to_vllm(made):
    engine, _ = made(lambda ids: finished(ids, "stop", stop_reason=" a", text=""))
    assert ask(engine, 0, stop=(" a",)).result(SECONDS).text == ""


def test_requests_have_names_of_their_own(made):
    engine, llm = made()
    for future in [ask(engine, 0) for _ in range(5)]:
        future.result(SECONDS)
    assert len(set(llm.names)) == 5


def test_a_failure_of_the_engine_is_a_failed_call_with_its_cause(made):
    def fail(ids):
        raise RuntimeError("wrapped") from ValueError("out of memory")

    engine, _ = made(fail)
    with pytest.raises(CallError, match="ValueError: out of memory"):
        ask(engine, 0).result(SECONDS)


def test_an_aborted_request_is_a_failed_call(made):
    engine, _ = made(lambda ids: finished(ids, "abort"))
    with pytest.raises(CallError, match="abort"):
        ask(engine, 0).result(SECONDS)


def test_a_prompt_beyond_the_window_never_reaches_the_engine(made):
    engine, llm = made()
    with pytest.raises(ContextOverflowError):
        ask(engine, 0, 1, max_tokens=15).result(SECONDS)
    assert llm.names == []


def test_a_cancelled_future_drops_the_request(made):
    engine, llm = made()
    future = ask(engine, 7)
    while not llm.names:
        ask(engine, 0).result(SECONDS)
    assert future.cancel()
    with pytest.raises(CancelledError):
        future.result(SECONDS)
    ask(engine, 0).result(SECONDS)
    assert llm.dropped == [llm.names[0]]


def test_closing_fails_what_is_in_flight_and_what_comes(made):
    engine, llm = made()
    futures = [ask(engine, 7) for _ in range(3)]
    engine.close()
    engine.close()
    futures.append(ask(engine, 0))
    for future in futures:
        with pytest.raises(CallError, match="closed"):
            future.result(SECONDS)
    assert llm.shut_down == 1


def test_asked_to_close_it_is_closed_and_a_failure_of_vllm_is_told(made):
    engine, llm = made()
    assert engine.ask_to_close().result(SECONDS) is None
    assert llm.shut_down == 1
    other, broken = made()
    broken.shutdown = lambda: 1 / 0
    assert isinstance(other.ask_to_close().exception(SECONDS), ZeroDivisionError)


def test_at_the_end_of_the_program_all_engines_are_closed_even_if_one_cannot_be(made, monkeypatch):
    (first, broken), (second, whole) = made(), made()
    broken.shutdown = lambda: 1 / 0
    monkeypatch.setattr(vllm_engine, "_open", {first, second})
    vllm_engine._close_all()
    assert whole.shut_down == 1
    with pytest.raises(CallError, match="closed"):
        ask(second, 0).result(SECONDS)
