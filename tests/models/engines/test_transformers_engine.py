"""The transformers engine: what it samples, how replies end, and what happens when something fails."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import CancelledError, wait

import pytest
from engines import requires
from models.tiny_transformers import END, KINDS, WINDOW, forward, greedy_by_generate, tiny_model, with_end_ids

from collabsim.errors import CallError, ConfigError, ContextOverflowError, PrerequisiteError
from collabsim.models.engines.engine import TokenRequest
from collabsim.models.engines.transformers_engine import TransformersEngine
from collabsim.request import Sampling

pytestmark = requires("torch", "transformers")

GREEDY = Sampling(temperature=0, max_tokens=24)
WARM = Sampling(temperature=0.8, max_tokens=24)
SECONDS = 60


def prompt_of(length: int, salt: int = 0) -> tuple[int, ...]:
    return (1, *((7 * place + 13 * salt) % 250 + 5 for place in range(length - 1)))


def ask(engine, prompt, sampling=GREEDY, seed=0):
    return engine.submit(TokenRequest(prompt, sampling, seed))


def answer(engine, prompt, sampling=GREEDY, seed=0):
    return ask(engine, prompt, sampling, seed).result(SECONDS)


def start(folder, **options):
    return TransformersEngine(folder, **{"threads": 1, **options})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp("models") / "llama")


@pytest.fixture(scope="module")
def shared(folder):
    engine = start(folder)
    yield engine
    engine.close()


@pytest.fixture
def engine(folder):
    engine = start(folder)
    yield engine
    engine.close()


@pytest.fixture
def held(engine, monkeypatch):
    """An engine whose forward pass waits for `go`, and tells with `entered` that it does."""
    go, entered, real = threading.Event(), threading.Event(), engine.model.forward

    def forward(*args, **kwargs):
        entered.set()
        go.wait(SECONDS)
        return real(*args, **kwargs)

    monkeypatch.setattr(engine.model, "forward", forward)
    yield engine, go, entered
    go.set()


# What is sampled


def test_equal_prompts_that_come_together_are_read_once_and_answered_as_if_alone(held, shared):
    engine, go, entered = held
    read, (one, other) = [], (prompt_of(30, 1), prompt_of(12, 2))
    first = ask(engine, prompt_of(5))
    entered.wait(SECONDS)
    engine.model.get_input_embeddings().register_forward_hook(lambda _, given, __: read.append(given[0].shape))
    asked = [(one, 1), (other, 2), (one, 3), (one, 4)]
    together = [ask(engine, prompt, WARM, seed) for prompt, seed in asked]
    go.set()
    wait([first, *together])
    assert [shape for shape in read if shape[1] > 1] == [(1, 5), (2, 30)]
    assert [future.result().ids for future in together] == [
        answer(shared, *one, WARM, seed).ids for *one, seed in asked
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_rows_of_one_batch_equal_generate_row_by_row(tmp_path, kind):
    folder = tiny_model(tmp_path / kind, kind)
    prompts = [prompt_of(length, salt) for salt, length in enumerate((3, 40, 11, 1, 25, 64, 8))]
    engine = start(folder)
    futures = [ask(engine, prompt) for prompt in prompts]
    found = [future.result(SECONDS).ids for future in futures]
    engine.close()
    assert found == [greedy_by_generate(folder, prompt, 24) for prompt in prompts]


def test_rows_that_join_a_running_batch_equal_generate(held, folder):
    engine, go, entered = held
    first = [ask(engine, prompt_of(5, salt), GREEDY.replace(max_tokens=8 + salt)) for salt in range(4)]
    entered.wait(SECONDS)
    late = [ask(engine, prompt_of(length, length)) for length in (70, 2, 30)]
    go.set()
    assert [future.result(SECONDS).ids for future in late] == [
        greedy_by_generate(folder, prompt_of(length, length), 24) for length in (70, 2, 30)
    ]
    assert [future.result(SECONDS).ids for future in first] == [
        greedy_by_generate(folder, prompt_of(5, salt), 8 + salt) for salt in range(4)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_seeded_rows_are_equal_alone_and_in_any_batch(tmp_path, kind):
    engine = start(tiny_model(tmp_path / kind, kind))
    settings = [WARM, WARM.replace(top_p=0.7), WARM.replace(top_k=5), WARM.replace(temperature=1.5, max_tokens=40)]
    asked = [(prompt_of(2 + 5 * number, number), settings[number % 4], number) for number in range(16)]
    together = [future.result(SECONDS) for future in [ask(engine, *what) for what in asked]]
    half = [future.result(SECONDS) for future in [ask(engine, *what) for what in reversed(asked[:8])]]
    alone = [answer(engine, *what) for what in asked]
    engine.close()
    assert [one.ids for one in together] == [one.ids for one in alone]
    assert [one.ids for one in reversed(half)] == [one.ids for one in alone[:8]]


def test_seeds_tell_samples_of_one_prompt_apart(shared):
    futures = [ask(shared, prompt_of(6), WARM, seed) for seed in range(8)]
    assert len({future.result(SECONDS).ids for future in futures}) > 4


def test_a_greedy_row_ignores_its_seed(shared):
    assert answer(shared, prompt_of(6), seed=1) == answer(shared, prompt_of(6), seed=2)


@pytest.mark.parametrize(
    ("sampling", "allowed"),
    [
        (Sampling(temperature=0, max_tokens=20), 1e-5),
        (Sampling(temperature=1.0, max_tokens=20), 1e-5),
        (Sampling(temperature=0.6, max_tokens=20), 1e-5),
        (Sampling(temperature=0.9, top_p=0.8, max_tokens=20), 1e-5),
        (Sampling(temperature=1.3, top_k=7, max_tokens=20), 1e-5),
        (Sampling(temperature=1.3, top_k=9, top_p=0.6, max_tokens=20), 1e-5),
    ],
)
def test_logprobs_equal_a_hand_computed_forward_pass(shared, folder, sampling, allowed):
    prompts = [prompt_of(length) for length in (4, 17, 33)]
    for prompt, future in [(prompt, ask(shared, prompt, sampling, seed=5)) for prompt in prompts]:
        reply = future.result(SECONDS)
        logits = forward(folder, prompt + reply.ids)[len(prompt) - 1 :]
        expected = [by_hand(row, sampling, token) for row, token in zip(logits, reply.ids, strict=False)]
        assert max(abs(a - b) for a, b in zip(reply.logprobs, expected, strict=True)) < allowed


def by_hand(logits, sampling, token):
    """ln p(token) after temperature, top-k, top-p, in plain Python."""
    values = [value / (sampling.temperature or 1) for value in logits.tolist()]
    order = sorted(range(len(values)), key=lambda place: -values[place])[: sampling.top_k or None]
    weights = {place: math.exp(values[place] - values[order[0]]) for place in order}
    total, running, kept = sum(weights.values()), 0.0, []
    for place in order:
        if running >= sampling.top_p * total and not sampling.greedy:
            break
        running += weights[place]
        kept.append(place)
    return math.log(weights[token] / sum(weights[place] for place in kept))


# How replies end


def test_ids_decode_to_the_text(shared):
    for future in [ask(shared, prompt_of(9, salt), WARM, salt) for salt in range(10)]:
        reply = future.result(SECONDS)
        assert reply.text == shared.tokenizer.decode(reply.ids, skip_special_tokens=True)
        assert len(reply.ids) == len(reply.logprobs)


def test_a_reply_that_fills_its_room_ends_by_length(shared):
    reply = answer(shared, prompt_of(9), GREEDY.replace(max_tokens=7))
    assert (len(reply.ids), reply.finish) == (7, "length")


def test_every_end_id_of_the_generation_config_ends_a_reply_and_stays_in_its_ids(folder, tmp_path):
    ids = greedy_by_generate(folder, prompt_of(9), 12)
    last = next(place for place in range(2, 12) if ids[place] not in ids[:place])
    engine = start(with_end_ids(folder, tmp_path / "ends", 9, ids[last]))
    reply = answer(engine, prompt_of(9))
    engine.close()
    assert (reply.ids, reply.finish) == (ids[: last + 1], "stop")
    assert reply.text == engine.tokenizer.decode(ids[:last], skip_special_tokens=True)


def test_a_reply_may_be_empty(folder, tmp_path):
    first = greedy_by_generate(folder, prompt_of(9), 1)
    engine = start(with_end_ids(folder, tmp_path / "ends", *first))
    reply = answer(engine, prompt_of(9))
    engine.close()
    assert (reply.text, reply.ids, reply.finish) == ("", first, "stop")


def test_a_stop_string_across_a_token_border_ends_the_reply_and_is_not_in_its_text(shared):
    whole = answer(shared, prompt_of(9), WARM.replace(max_tokens=60), seed=3)
    place = next(place for place in range(20, 50) if whole.text[place : place + 3].isascii())
    stop = whole.text[place : place + 3]
    reply = answer(shared, prompt_of(9), WARM.replace(max_tokens=60, stop=("never there", stop)), seed=3)
    assert reply.text == whole.text[: whole.text.index(stop)]
    assert reply.finish == "stop"
    assert stop in shared.tokenizer.decode(reply.ids)
    assert stop not in shared.tokenizer.decode(reply.ids[:-1])
    assert reply.ids == whole.ids[: len(reply.ids)]


def test_a_reply_that_begins_with_a_stop_string_is_empty(shared):
    whole = answer(shared, prompt_of(12), WARM, seed=1)
    reply = answer(shared, prompt_of(12), WARM.replace(stop=(whole.text[:1],)), seed=1)
    assert (reply.text, reply.finish) == ("", "stop")


# Many requests, cancelled ones, impossible ones


def test_sixty_four_uneven_requests_at_once_are_all_answered(shared, folder):
    asked = [
        (prompt_of(1 + 3 * number, number), WARM.replace(max_tokens=1 + number % 30), number) for number in range(64)
    ]
    results: dict[int, object] = {}

    def one(number):
        results[number] = answer(shared, *asked[number])

    threads = [threading.Thread(target=one, args=(number,)) for number in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert sorted(results) == list(range(64))
    assert all(reply.finish == "stop" or len(reply.ids) == 1 + n % 30 for n, reply in results.items())
    assert results[7].ids == answer(shared, *asked[7]).ids


def test_a_batch_never_passes_its_token_budget(folder):
    engine = start(folder, max_batch_tokens=100)
    widths, real = [], engine.model.forward
    engine.model.forward = lambda *args, **kwargs: (
        widths.append(kwargs["attention_mask"].numel()) or real(*args, **kwargs)
    )
    futures = [ask(engine, prompt_of(16, salt), GREEDY.replace(max_tokens=4)) for salt in range(12)]
    assert not wait(futures, SECONDS).not_done
    engine.close()
    assert max(widths) <= 100


def test_a_request_larger_than_the_budget_runs_alone(folder):
    engine = start(folder, max_batch_tokens=10)
    assert len(answer(engine, prompt_of(30), GREEDY).ids) == 24
    engine.close()


def test_a_cancelled_request_leaves_the_batch_and_the_others_go_on(held, folder):
    engine, go, entered = held
    futures = [ask(engine, prompt_of(9, salt), GREEDY.replace(max_tokens=30)) for salt in range(3)]
    entered.wait(SECONDS)
    late = ask(engine, prompt_of(9, 9))
    assert futures[1].cancel()
    assert late.cancel()
    go.set()
    assert not wait([*futures, late], SECONDS).not_done
    assert futures[0].result().ids == greedy_by_generate(folder, prompt_of(9, 0), 30)
    assert futures[2].result().ids == greedy_by_generate(folder, prompt_of(9, 2), 30)
    with pytest.raises(CancelledError):
        futures[1].result()


def test_a_prompt_at_the_edge_of_the_window_is_answered(shared):
    assert answer(shared, prompt_of(WINDOW - 24)).finish in ("length", "stop")


@pytest.mark.parametrize(
    ("prompt", "error", "words"),
    [
        (prompt_of(WINDOW - 23), ContextOverflowError, "do not fit the window of 256"),
        ((), CallError, "at least one token"),
        ((1, 10_000), CallError, "wrong tokenizer"),
        ((1, -1), CallError, "wrong tokenizer"),
    ],
)
def test_an_impossible_request_fails_alone(shared, prompt, error, words):
    fine = ask(shared, prompt_of(5))
    with pytest.raises(error, match=words):
        answer(shared, prompt)
    assert fine.result(SECONDS).ids


# Failures


def test_a_failing_forward_pass_fails_what_is_in_flight_and_nothing_later(engine, monkeypatch):
    real = engine.model.forward
    monkeypatch.setattr(engine.model, "forward", lambda *args, **kwargs: (_ for _ in ()).throw(ValueError("torn")))
    with pytest.raises(CallError, match="ValueError: torn"):
        answer(engine, prompt_of(5))
    monkeypatch.setattr(engine.model, "forward", real)
    assert answer(engine, prompt_of(5)).ids


def test_out_of_memory_halves_the_batch_and_loses_no_token(engine, folder, monkeypatch):
    import torch

    real, seen = engine.model.forward, []

    def forward(*args, **kwargs):
        rows = len(kwargs["input_ids"])
        seen.append(rows)
        if rows > 2 and kwargs["past_key_values"].get_seq_length() > 20:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(*args, **kwargs)

    monkeypatch.setattr(engine.model, "forward", forward)
    futures = [ask(engine, prompt_of(9, salt), WARM, salt) for salt in range(4)]
    found = [future.result(SECONDS) for future in futures]
    assert max(seen) > 2
    monkeypatch.setattr(engine.model, "forward", real)
    assert [reply.ids for reply in found] == [answer(engine, prompt_of(9, n), WARM, n).ids for n in range(4)]


def test_out_of_memory_twice_is_a_failed_call(engine, monkeypatch):
    import torch

    def forward(*args, **kwargs):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(engine.model, "forward", forward)
    futures = [ask(engine, prompt_of(9, salt)) for salt in range(4)]
    assert not wait(futures, SECONDS).not_done
    assert all(isinstance(future.exception(), CallError) for future in futures)


def test_logits_that_are_not_numbers_fail_their_row_only(engine, folder, monkeypatch):
    real = engine.model.forward

    def forward(*args, **kwargs):
        output = real(*args, **kwargs)
        output.logits[kwargs["input_ids"][:, -1] == 77] = math.nan
        return output

    monkeypatch.setattr(engine.model, "forward", forward)
    bad, good = ask(engine, (1, 77)), ask(engine, (1, 78, 79), GREEDY.replace(max_tokens=1))
    with pytest.raises(CallError, match="not numbers"):
        bad.result(SECONDS)
    assert good.result(SECONDS).ids == greedy_by_generate(folder, (1, 78, 79), 1)


def test_an_engine_whose_thread_died_says_so(engine, monkeypatch):
    monkeypatch.setattr(engine, "_recover", lambda rows, error: (_ for _ in ()).throw(error))
    monkeypatch.setattr(engine.model, "forward", lambda *args, **kwargs: (_ for _ in ()).throw(ValueError("torn")))
    with pytest.raises(CallError, match=r"the engine died of ValueError: torn"):
        answer(engine, prompt_of(5))
    with pytest.raises(CallError, match="make a new one"):
        answer(engine, prompt_of(5))


# The end


def test_closing_a_busy_engine_fails_what_is_in_flight(held):
    engine, go, entered = held
    futures = [ask(engine, prompt_of(9, salt)) for salt in range(3)]
    entered.wait(SECONDS)
    late = ask(engine, prompt_of(4))
    closing = threading.Thread(target=engine.close)
    closing.start()
    time.sleep(0.05)
    go.set()
    closing.join(SECONDS)
    for future in [*futures, late]:
        with pytest.raises(CallError, match="closed"):
            future.result(SECONDS)
    assert engine.model is None
    assert not engine._thread.is_alive()


def test_a_closed_engine_closes_again_and_refuses_requests(folder):
    engine = start(folder)
    engine.close()
    engine.close()
    with pytest.raises(CallError, match="closed"):
        answer(engine, prompt_of(4))


def test_an_engine_may_be_closed_from_a_callback(folder):
    engine = start(folder)
    future = ask(engine, prompt_of(4))
    future.add_done_callback(lambda _: engine.close())
    future.result(SECONDS)
    engine._thread.join(SECONDS)
    assert not engine._thread.is_alive()


SCRIPT = """
    import sys, time
    from pathlib import Path
    from collabsim.models.engines.engine import TokenRequest
    from collabsim.models.engines.transformers_engine import TransformersEngine
    from collabsim.request import Sampling
    engine = TransformersEngine(Path(sys.argv[1]), threads=1)
    futures = [engine.submit(TokenRequest((1, 5, 6, seed), Sampling(max_tokens=240), seed)) for seed in range(64)]
    real = engine.model.forward
    engine.model.forward = lambda *a, **k: (time.sleep(0.05), real(*a, **k))[1]
    print("busy", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "codes"), [("", {0}), ("raise ValueError('oh')", {1}), ("time.sleep(60)", {1, -signal.SIGINT})]
)
def test_a_process_with_a_busy_engine_ends_at_once(folder, ending, codes):
    """At its end, with an error, and on Ctrl-C."""
    script = textwrap.dedent(SCRIPT) + ending
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == b"busy\n"
    if -signal.SIGINT in codes:
        os.kill(process.pid, signal.SIGINT)
    began = time.monotonic()
    _, errors = process.communicate(timeout=30)
    assert time.monotonic() - began < 10
    assert process.returncode in codes, errors
    assert b"Fatal" not in errors


# Loading


def test_a_missing_weight_is_refused_and_not_made_up(tmp_path):
    from safetensors.torch import load_file, save_file

    folder = tiny_model(tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(PrerequisiteError, match="1 are missing"):
        start(folder)


def test_cut_off_weights_are_refused_in_one_line(tmp_path):
    folder = tiny_model(tmp_path / "model")
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(PrerequisiteError, match="whole weights") as caught:
        start(folder)
    assert "\n" not in str(caught.value)


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(PrerequisiteError, match="expected a folder with config"):
        start(tmp_path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dtype": "bfloat"}, "did you mean 'bfloat16'"),
        ({"device": "cuda:99"}, "a device that torch can use here"),
        ({"max_model_len": WINDOW + 1}, "max_model_len from 2 to the model's 256"),
    ],
)
def test_an_impossible_option_is_refused(folder, options, words):
    with pytest.raises(ConfigError, match=words):
        start(folder, **options)


def test_a_model_that_does_not_fit_into_memory_is_refused(folder, monkeypatch):
    monkeypatch.setattr("collabsim.models.weights.torch_loading._free_gib", lambda device: 0.0)
    with pytest.raises(PrerequisiteError, match="GiB of free memory on cpu"):
        start(folder)


@pytest.mark.parametrize(("native", "dtype"), [(True, "bfloat16"), (False, "float32")])
def test_auto_is_single_precision_on_a_cpu_without_instructions_for_the_checkpoints_dtype(
    tmp_path, monkeypatch, native, dtype
):
    folder = tiny_model(tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "dtype": "bfloat16"}))
    monkeypatch.setattr("collabsim.models.weights.dtype.computes_natively", lambda dtype: native)
    engine = start(folder, device="cpu")
    engine.close()
    assert engine.dtype == dtype


def test_a_missing_package_is_named_in_one_line(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(PrerequisiteError, match="'transformers' cannot be imported"):
        start(folder)


def test_a_state_that_rows_cannot_join_is_refused(tmp_path):
    folder = tiny_model(tmp_path / "model", "gemma3_text")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "layer_types": ["full_attention", "linear_attention"]}))
    with pytest.raises(ConfigError, match="linear_attention; use `engine: vllm`"):
        start(folder)


def test_the_window_can_be_made_shorter(folder):
    engine = start(folder, max_model_len=30)
    assert engine.max_model_len == 30
    with pytest.raises(ContextOverflowError):
        answer(engine, prompt_of(20))
    engine.close()


def test_two_engines_side_by_side_give_what_each_gives_alone(folder, tmp_path):
    other = tiny_model(tmp_path / "other", "qwen2", seed=1)
    engines = [start(folder), start(other)]
    futures = [ask(engine, prompt_of(5, salt)) for salt in range(10) for engine in engines]
    found = [future.result(SECONDS).ids for future in futures]
    for engine in engines:
        engine.close()
    assert found == [
        greedy_by_generate(place, prompt_of(5, salt), 24) for salt in range(10) for place in (folder, other)
    ]


def test_the_end_token_is_not_part_of_the_text(folder, tmp_path):
    assert END == 2
    engine = start(folder)
    futures = [ask(engine, prompt_of(6), Sampling(temperature=3.0, max_tokens=200), seed) for seed in range(24)]
    replies = [future.result(SECONDS) for future in futures]
    engine.close()
    ended = [reply for reply in replies if reply.ids[-1] == END]
    assert ended
    assert all("</s>" not in reply.text and reply.finish == "stop" for reply in ended)
