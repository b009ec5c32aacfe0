"""A check, before a model is loaded, that it fits into this machine's memory.

In: a model folder and the size of its KV cache. Out: nothing, or a `PrerequisiteError` with what is free and what is
needed. An engine that is started without room is killed by the system half-way, and all others of the process with it.
Left out on purpose: memory of GPUs, which vLLM checks itself.
"""

from __future__ import annotations

import os
from pathlib import Path

from collabsim.errors import PrerequisiteError

GIB = 2**30
WORKING_SPACE = 3 * GIB // 4
"""Beyond weights and KV cache: libraries, activations, buffers."""
_WEIGHTS = ("*.safetensors", "*.bin")
_CGROUP = Path("/sys/fs/cgroup")


def check_memory(folder: Path, kv_bytes: int, *, widened: bool, others: int = 0) -> None:
    """Raises `PrerequisiteError` when a model of `folder` and its KV cache (bytes) do not fit into free memory.

    `widened` says that 16-bit weights will be held in 32 bits; `others` is the number of engines open already.
    """
    weights = weight_bytes(folder) * (2 if widened else 1)
    needed = weights + kv_bytes + WORKING_SPACE
    free = free_bytes()
    if free is None or needed <= free:
        return
    close = f"close one of the {others} engines that are open, " if others else ""
    raise PrerequisiteError(
        f"{folder.name}: expected {_gib(needed)} GiB of free memory (weights {_gib(weights)}, KV cache "
        f"{_gib(kv_bytes)}, working space {_gib(WORKING_SPACE)}), got {_gib(free)} GiB; {close}lower kv_space_gib, end "
        "other programs, or choose a smaller model"
    )


def weight_bytes(folder: Path) -> int:
    """Size of a folder's weight files; those in safetensors when there are any."""
    for pattern in _WEIGHTS:
        if sizes := [path.stat().st_size for path in folder.glob(pattern)]:
            return sum(sizes)
    return 0


def free_bytes() -> int | None:
    """Memory that can still be had, within the limit of this container; None where the system does not tell."""
    known = [size for size in (_free_on_machine(), _free_in_container()) if size is not None]
    return min(known, default=None)


def _free_on_machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _free_in_container() -> int | None:
    """Of the control group that is mounted here (version 2): its limit, less what is used and cannot be dropped."""
    try:
        limit = int((_CGROUP / "memory.max").read_text())  # "max" without a limit
        used = int((_CGROUP / "memory.current").read_text())
        statistics = dict(line.split() for line in (_CGROUP / "memory.stat").read_text().splitlines())
        return limit - used + int(statistics.get("inactive_file", 0))
    except (OSError, ValueError):
        return None


def _gib(size: int) -> str:
    return f"{size / GIB:.1f}"
