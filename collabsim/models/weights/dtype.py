"""The number format that `dtype: auto` stands for, known without importing torch.

In: the format that the weights are stored in, and where they will run. Out: `bfloat16`, `float16` or `float32`: what the
engine is told, and what the model's identity names. Another format gives other tokens, so two machines on which `auto`
differs must not share generations; and a finished sweep is read without loading torch, so its flags of the processor are
read from the system. Left out on purpose: quantised formats, and memory.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

SHORT = ("bfloat16", "float16")
"""Formats of 16 bits, which some processors have no instructions for."""
DTYPES = ("auto", *SHORT, "float32")
_CPUINFO = Path("/proc/cpuinfo")
_FLAGS = {
    "bfloat16": frozenset({"avx512_bf16", "amx_bf16", "bf16"}),
    "float16": frozenset({"avx512_fp16", "amx_fp16", "asimdhp"}),
}
"""As Linux names them, on x86-64 and on aarch64."""
_APPLE = {"bfloat16": "hw.optional.arm.FEAT_BF16", "float16": "hw.optional.arm.FEAT_FP16"}


def resolve_dtype(stored: str, asked: str, device: str, supported: Sequence[str] = ()) -> str:
    """What `asked` comes to: itself, or for `auto` the `stored` format.

    On a CPU `auto` is float32 for a short format without instructions for it: that is many times faster, and exact.
    `device` begins with `cpu` or names something else; `supported` are the formats that the engine can run there, best
    first (empty: all). A stored format of another kind (float64, float8) counts as float32.
    """
    if asked != "auto":
        return asked
    if stored not in SHORT or (device.startswith("cpu") and not computes_natively(stored)):
        return "float32"
    return stored if not supported or stored in supported else supported[0]


@cache
def computes_natively(dtype: str) -> bool:
    """Whether this CPU has instructions for `bfloat16` or `float16`. A system that does not tell counts as no."""
    if platform.system() == "Darwin":
        with suppress(OSError):
            told = subprocess.run(["sysctl", "-n", _APPLE[dtype]], capture_output=True, check=False)
            return told.stdout.strip() == b"1"
        return False
    return not _FLAGS[dtype].isdisjoint(processor_flags())


def processor_flags() -> frozenset[str]:
    """Instruction sets of the first core, in Linux's words; empty where there is no /proc/cpuinfo."""
    with suppress(OSError):
        for line in _CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, flags = line.partition(":")
            if name.strip() in ("flags", "Features"):
                return frozenset(flags.split())
    return frozenset()


def likely_device() -> str:
    """`cuda` when torch here is built for GPUs and a driver is loaded, else `cpu`; torch itself is not asked.

    What it says decides the format of `auto` only; if torch sees no GPU after all, the model runs slowly, and still in the
    format that its identity names.
    """
    try:
        build = version("torch").partition("+")[2]
    except PackageNotFoundError:
        return "cpu"
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES", "all").strip() in ("", "-1")
    driver = Path("/proc/driver/nvidia/version").exists() or Path("/dev/kfd").exists()
    return "cuda" if driver and not hidden and build != "cpu" else "cpu"
