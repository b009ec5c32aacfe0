"""vLLM in process on a CPU: what it samples, how replies end, several engines, failures."""

from __future__ import annotations

import os
import random
import sys
import threading
from concurrent.futures import CancelledError, wait
from importlib import import_module

import pytest
from engines import requires
from tiny_vllm import END, WINDOW, logprobs, vllm_folder

from collabsim.errors import CallError, ConfigError, ContextOverflowError, PrerequisiteError
from collabsim.models.engines import vllm_memory
from collabsim.models.engines.engine import TokenRequest
from collabsim.models.engines.vllm_engine import vllm_engine
from collabsim.request import Sampling

pytestmark = requires("torch", "transformers", "vllm")

GREEDY = Sampling(temperature=0, max_tokens=24)
WARM = Sampling(temperature=0.8, max_tokens=24)
SECONDS = 120


def prompt_of(length, salt=0):
    return (1, *((7 * place + 13 * salt) % 250 + 5 for place in range(length - 1)))


def ask(engine, prompt, sampling=GREEDY, seed=0):
    return engine.submit(TokenRequest(prompt, sampling, seed))


def answer(engine, prompt, sampling=GREEDY, seed=0):
    return ask(engine, prompt, sampling, seed).result(SECONDS)


def start(folder, **options):
    return vllm_engine(folder, **{"dtype": "float32", "kv_space_gib": 0.125, "max_batch": 64, **options})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return vllm_folder(tmp_path_factory.mktemp("models") / "llama")


@pytest.fixture(scope="module")
def other_folder(tmp_path_factory):
    return vllm_folder(tmp_path_factory.mktemp("models") / "other", seed=1)


@pytest.fixture(scope="module")
def shared(folder):
    import_module("llvmlite.binding")  # as whoever uses numba has; see the test of it
    engine = start(folder)
    yield engine
    engine.close()


@pytest.fixture
def engine(folder):
    engine = start(folder)
    yield engine
    engine.close()


def test_an_engine_starts_where_numba_was_loaded_before(shared):
    assert "llvmlite.binding.ffi" in sys.modules
    assert answer(shared, prompt_of(3)).ids


def test_a_reply_has_ids_logprobs_text_and_a_reason_to_end(shared):
    reply = answer(shared, prompt_of(6), WARM)
    assert len(reply.ids) == len(reply.logprobs)
    assert all(value <= 0 for value in reply.logprobs)
    assert reply.text
    assert reply.finish in ("stop", "length")


@pytest.mark.parametrize(
    "sampling",
    [GREEDY, WARM, Sampling(1.3, max_tokens=24), Sampling(0.9, 0.7, 12, 24)],
    ids=["greedy", "warm", "hot", "cut"],
)
def test_logprobs_in_float32_are_those_of_transformers_to_4_digits(shared, folder, sampling):
    prompt = prompt_of(9)
    reply = answer(shared, prompt, sampling, seed=3)
    assert reply.logprobs == pytest.approx(logprobs(folder, prompt, reply.ids, sampling), abs=1e-4)


def test_logprobs_in_bfloat16_are_those_of_transformers_to_bfloat16_accuracy(folder):
    engine = start(folder, dtype="bfloat16")
    prompt = prompt_of(9)
    replies = [future.result(SECONDS) for future in [ask(engine, prompt, WARM, seed) for seed in range(8)]]
    engine.close()
    gaps = [
        abs(ours - theirs)
        for reply in replies
        for ours, theirs in zip(reply.logprobs, logprobs(folder, prompt, reply.ids, WARM, "bfloat16"), strict=True)
    ]
    assert sum(gaps) / len(gaps) < 0.03
    assert max(gaps) < 0.2


def test_greedy_tokens_are_those_of_model_generate(shared, folder):
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    prompts = [prompt_of(length, length) for length in (2, 9, 40)]
    futures = [ask(shared, prompt) for prompt in prompts]
    for prompt, future in zip(prompts, futures, strict=True):
        ids = torch.tensor([prompt])
        row = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=24, do_sample=False)[0]
        assert future.result(SECONDS).ids == tuple(row[len(prompt) :].tolist())


def test_ids_decode_to_the_text(shared, folder):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    for seed in range(8):
        reply = answer(shared, prompt_of(5), WARM, seed)
        assert tokenizer.decode(reply.ids, skip_special_tokens=True) == reply.text


def test_the_same_seeds_in_the_same_batch_give_the_same_replies(shared):
    def batch():
        return [future.result(SECONDS) for future in [ask(shared, prompt_of(5), WARM, seed) for seed in range(8)]]

    assert [reply.ids for reply in batch()] == [reply.ids for reply in batch()]


def test_seeds_tell_requests_of_one_prompt_apart(shared):
    replies = [future.result(SECONDS) for future in [ask(shared, prompt_of(5), WARM, seed) for seed in range(16)]]
    assert len({reply.ids for reply in replies}) > 12


def test_a_seed_samples_the_same_alone_and_among_others_in_float32(shared):
    alone = answer(shared, prompt_of(5), WARM, seed=7)
    futures = [ask(shared, prompt_of(5 + seed), WARM, seed) for seed in range(20)]
    futures.append(ask(shared, prompt_of(5), WARM, seed=7))
    assert futures[-1].result(SECONDS).ids == alone.ids


def two_tokens_of(text):
    """Two signs in a row that are a token each (one byte), not at the beginning; None without any."""
    pairs = (text[place : place + 2] for place in range(3, len(text) - 3))
    return next((pair for pair in pairs if pair.isascii() and pair not in text[:4]), None)


def test_a_stop_string_that_crosses_tokens_ends_the_reply_and_is_not_in_its_text(shared):
    wholes = ((seed, answer(shared, prompt_of(6), WARM, seed)) for seed in range(100))
    seed, whole = next((seed, whole) for seed, whole in wholes if two_tokens_of(whole.text))
    stop = two_tokens_of(whole.text)
    cut = answer(shared, prompt_of(6), WARM.replace(stop=("never seen", stop)), seed)
    assert cut.text == whole.text[: whole.text.index(stop)]
    assert cut.finish == "stop"
    assert cut.ids == whole.ids[: len(cut.ids)]
    assert 0 < len(cut.ids) < len(whole.ids)


def test_a_reply_ends_at_max_tokens(shared):
    reply = answer(shared, prompt_of(6), GREEDY.replace(max_tokens=3))
    assert (len(reply.ids), reply.finish) == (3, "length")


def test_an_end_token_at_once_is_an_empty_reply(shared, tmp_path):
    import json

    first = answer(shared, prompt_of(6)).ids[0]
    ending = vllm_folder(tmp_path / "ending")
    (ending / "generation_config.json").write_text(json.dumps({"eos_token_id": [END, first]}))
    engine = start(ending)
    reply = answer(engine, prompt_of(6))
    engine.close()
    assert (reply.ids, reply.text, reply.finish) == ((first,), "", "stop")


def test_a_prompt_up_to_the_edge_of_the_window_is_answered(shared):
    assert shared.max_model_len == WINDOW
    reply = answer(shared, prompt_of(WINDOW - 1), GREEDY.replace(max_tokens=1))
    assert len(reply.ids) == 1


def test_a_prompt_beyond_the_window_is_refused(shared):
    with pytest.raises(ContextOverflowError, match="256"):
        answer(shared, prompt_of(WINDOW - 1), GREEDY.replace(max_tokens=2))


def test_an_empty_prompt_is_refused(shared):
    with pytest.raises(CallError, match="at least one token"):
        answer(shared, ())


def test_a_temperature_that_vllm_would_change_is_refused(shared):
    for temperature in (0.001, 2.5):
        with pytest.raises(CallError, match="temperature"):
            answer(shared, prompt_of(4), WARM.replace(temperature=temperature))


def test_a_token_outside_the_vocabulary_fails_its_own_request_only(shared):
    wrong, right = ask(shared, (1, 10**6)), ask(shared, prompt_of(4))
    with pytest.raises(CallError):
        wrong.result(SECONDS)
    assert right.result(SECONDS).ids


def test_64_uneven_requests_at_once_are_answered_as_each_alone(shared):
    futures = [ask(shared, prompt_of(2 + 3 * salt % 150, salt), GREEDY, salt) for salt in range(64)]
    together = [future.result(SECONDS).ids for future in futures]
    alone = [answer(shared, prompt_of(2 + 3 * salt % 150, salt)).ids for salt in range(0, 64, 9)]
    assert together[::9] == alone


def test_requests_from_many_threads_are_all_answered(shared):
    found = []

    def work(salt):
        found.extend(answer(shared, prompt_of(4, salt), WARM, seed).finish for seed in range(3))

    threads = [threading.Thread(target=work, args=(salt,)) for salt in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert len(found) == 36


def test_requests_that_were_pushed_out_of_the_cache_keep_their_seeds(folder, shared):
    sampling = WARM.replace(max_tokens=150)
    wanted = [ask(shared, prompt_of(5, salt), sampling, salt) for salt in range(30)]
    tight = start(folder, kv_space_gib=0.0008)  # 13 blocks of 128 tokens, where 60 are wanted
    pushed_out = []

    def count(llm):
        scheduler = llm.engine_core.engine_core.scheduler
        preempt = scheduler._preempt_request
        scheduler._preempt_request = lambda *args, **options: (pushed_out.append(1), preempt(*args, **options))[1]

    tight.apply(count).result(SECONDS)
    found = [ask(tight, prompt_of(5, salt), sampling, salt) for salt in range(30)]
    replies = [future.result(SECONDS).ids for future in found]
    tight.close()
    assert pushed_out
    assert replies == [future.result(SECONDS).ids for future in wanted]


def test_two_engines_side_by_side_give_what_each_gives_alone(shared, folder, other_folder):
    alone = [answer(shared, prompt_of(5, salt)).ids for salt in range(6)]
    other = start(other_folder)
    engines = [shared, other]
    futures = [[ask(engine, prompt_of(5, salt)) for engine in engines] for salt in range(6)]
    together = [[future.result(SECONDS).ids for future in pair] for pair in futures]
    other_alone = [answer(other, prompt_of(5, salt)).ids for salt in range(6)]
    other.close()
    assert [pair[0] for pair in together] == alone
    assert [pair[1] for pair in together] == other_alone
    assert alone != other_alone


def test_the_others_speak_on_when_one_engine_is_closed(shared, other_folder):
    other = start(other_folder)
    slow = ask(shared, prompt_of(5), GREEDY.replace(max_tokens=200))
    other.close()
    assert slow.result(SECONDS).ids
    assert answer(shared, prompt_of(6)).ids


def test_a_cancelled_request_leaves_the_engine(shared):
    future = ask(shared, prompt_of(5), WARM.replace(max_tokens=WINDOW - 5))
    assert future.cancel()
    with pytest.raises(CancelledError):
        future.result()
    assert answer(shared, prompt_of(4)).ids
    left = shared.apply(lambda llm: llm.get_num_unfinished_requests()).result(SECONDS)
    assert (left, shared.busy) == (0, False)


def test_closing_a_busy_engine_fails_what_is_in_flight_and_what_comes(engine):
    futures = [ask(engine, prompt_of(5), WARM.replace(max_tokens=WINDOW - 5), seed) for seed in range(8)]
    engine.close()
    engine.close()
    wait(futures, SECONDS)
    futures.append(ask(engine, prompt_of(5)))
    assert all(isinstance(future.exception(SECONDS), CallError) for future in futures)
    with pytest.raises(CallError, match="closed"):
        engine.apply(lambda llm: llm).result(SECONDS)


def test_in_the_child_of_a_fork_an_engine_is_closed_and_the_parents_is_not(shared):
    import multiprocessing

    def child(pipe):
        future = ask(shared, prompt_of(5))
        shared.close()
        pipe.send(str(future.exception(SECONDS)))

    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=child, args=(theirs,))
    process.start()
    assert ours.poll(SECONDS)
    assert "parent process" in ours.recv()
    process.join(SECONDS)
    assert process.exitcode == 0
    assert answer(shared, prompt_of(5)).ids


def test_an_engine_that_fails_takes_its_requests_with_it_and_no_others(shared, engine, monkeypatch):
    def broken():
        raise RuntimeError("no more")

    engine.apply(lambda llm: monkeypatch.setattr(llm, "step", broken)).result(SECONDS)
    failing = [ask(engine, prompt_of(5), WARM, seed) for seed in range(3)]
    right = ask(shared, prompt_of(5))
    for future in failing:
        with pytest.raises(CallError, match="no more"):
            future.result(SECONDS)
    assert right.result(SECONDS).ids
    with pytest.raises(CallError, match="no more"):
        answer(engine, prompt_of(5))


def test_prefix_caching_is_on_and_chunked_prefill_off(shared):
    config = shared.apply(lambda llm: llm.vllm_config).result(SECONDS)
    assert config.cache_config.enable_prefix_caching
    assert config.cache_config.block_size == 32, "short prompts have a start in common, too"
    assert not config.scheduler_config.enable_chunked_prefill
    assert config.scheduler_config.max_num_batched_tokens >= shared.max_model_len


def test_weights_can_be_replaced_between_steps_under_a_new_revision(engine, other_folder):
    from safetensors.torch import load_file

    other = start(other_folder)
    wanted = answer(other, prompt_of(5)).ids
    other.close()
    tensors = load_file(other_folder / "model.safetensors")

    def reload(llm):
        llm.collective_rpc("reload_weights", kwargs={"weights_iterator": iter(tensors.items())})
        llm.reset_prefix_cache()

    assert engine.revision == "0"
    assert answer(engine, prompt_of(5)).ids != wanted
    engine.apply(reload, revision="step-1").result(SECONDS)
    assert engine.revision == "step-1"
    assert answer(engine, prompt_of(5)).ids == wanted


def test_a_start_leaves_random_numbers_threads_and_environment_as_they_were(shared, other_folder, monkeypatch):
    import numpy
    import torch

    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "3")
    random.seed(1)
    numpy.random.seed(1)
    torch.manual_seed(1)
    wanted = random.getstate(), numpy.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    preload, threads = os.environ.get("LD_PRELOAD"), torch.get_num_threads()
    engine = start(other_folder)
    found = random.getstate(), numpy.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    size = engine.apply(lambda llm: llm.vllm_config.cache_config.kv_cache_memory_bytes).result(SECONDS)
    engine.close()
    assert found == wanted
    assert size == 2**27
    assert (os.environ.get("LD_PRELOAD"), os.environ["VLLM_CPU_KVCACHE_SPACE"]) == (preload, "3")
    torch.set_num_threads(threads)
    assert torch.get_num_threads() == threads


def test_the_window_and_revision_can_be_named(folder):
    engine = start(folder, max_model_len=64, revision="sha256:abc")
    assert (engine.max_model_len, engine.revision) == (64, "sha256:abc")
    engine.close()


def test_no_memory_for_another_engine_is_said_before_it_is_started(shared, folder, monkeypatch):
    monkeypatch.setattr(vllm_memory, "free_bytes", lambda: 2**29)
    with pytest.raises(PrerequisiteError, match=r"expected 0\.9 GiB of free memory .*, got 0\.5 GiB; close one of the"):
        start(folder)
    assert answer(shared, prompt_of(4)).ids


def test_a_window_longer_than_the_models_own_is_refused(folder):
    with pytest.raises(PrerequisiteError, match="max_model_len"):
        start(folder, max_model_len=10 * WINDOW)


def test_a_cache_too_small_for_one_request_is_refused(folder):
    with pytest.raises(PrerequisiteError, match="KV cache"):
        start(folder, kv_space_gib=1e-4)


def test_a_folder_with_broken_weights_is_refused_and_others_can_be_started(tmp_path, folder):
    broken = vllm_folder(tmp_path / "broken")
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    with pytest.raises(PrerequisiteError, match="broken"):
        start(broken)
    engine = start(folder)
    assert answer(engine, prompt_of(4)).ids
    engine.close()


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(PrerequisiteError, match=r"config\.json"):
        start(tmp_path)


@pytest.mark.parametrize(
    "options",
    [{"dtype": "int8"}, {"max_model_len": 1}, {"kv_space_gib": 0}, {"tensor_parallel": 2}, {"gpu_memory": 1.5}],
    ids=str,
)
def test_settings_that_cannot_be_are_refused(folder, options):
    with pytest.raises(ConfigError, match=r"expected .*, got "):
        start(folder, **options)
