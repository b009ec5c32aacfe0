"""A program that uses vLLM and ends in some way: `python vllm_program.py FOLDER DRIVER ENDING`."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

from collabsim.models.engines.engine import TokenRequest
from collabsim.models.engines.vllm_engine import vllm_engine
from collabsim.request import Sampling

SECONDS = 120


def in_process(folder):
    return vllm_engine(folder, dtype="float32", kv_space_gib=0.125)


def in_own_process(folder):
    """The driver for GPUs, with the CPU as its device."""
    import collabsim.models.engines.vllm_engine as module
    from collabsim.models.engines.vllm_gpu import AsyncEngine

    def prepare():
        os.environ.update(VLLM_LOGGING_LEVEL="ERROR", VLLM_CPU_OMP_THREADS_BIND="nobind")
        return False

    def small(name, arguments, **options):
        return AsyncEngine(name, {**arguments, "enforce_eager": True, "kv_cache_memory_bytes": 2**27}, **options)

    module._prepare_vllm, module.AsyncEngine = prepare, small
    return vllm_engine(folder, dtype="float32")


def main(folder: Path, driver: str, ending: str) -> None:
    print("loading", flush=True)
    engine = {"cpu": in_process, "async": in_own_process}[driver](folder)
    ask = [TokenRequest((1, 20 + seed, 30), Sampling(0.8, max_tokens=200), seed) for seed in range(6)]
    short = engine.submit(TokenRequest((1, 9, 8), Sampling(0, max_tokens=8), 0)).result(SECONDS)
    print("answered", len(short.ids), len(short.logprobs), flush=True)
    futures = [engine.submit(request) for request in ask]
    print("busy", flush=True)
    if ending == "error":
        raise ValueError("as the test wants it")
    if ending == "wait":
        time.sleep(SECONDS)
    if ending == "close":
        futures[0].cancel()
        print("others", sum(bool(future.result(SECONDS).ids) for future in futures[1:]), flush=True)
        futures = [engine.submit(request) for request in ask]
        engine.close()
        print("failed", *{type(future.exception(SECONDS)).__name__ for future in futures}, flush=True)
        deadline = time.monotonic() + 5
        while any(thread.name == "collabsim-vllm" for thread in threading.enumerate()):
            assert time.monotonic() < deadline, "the stepping thread lives on"
            time.sleep(0.01)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
