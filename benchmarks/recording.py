"""Results of benchmarks as Markdown in `benchmarks/results`: numbers, with the command, date and machine they are from."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def record(
    name: str,
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *notes: str,
    command: str | None = None,
    folder: Path = RESULTS,
) -> Path:
    """Print a table and write it to `NAME.md` in `folder`, with where it comes from."""
    lines = [" | ".join(header), " | ".join("---" for _ in header), *(" | ".join(map(str, row)) for row in rows)]
    table = "\n".join(f"| {line} |" for line in lines)
    command = command or f"make bench ARGS='-k {name}'"
    origin = f"`{command}` on {datetime.now(UTC):%Y-%m-%d}\n{machine()}"
    text = "\n\n".join([f"# {title}", table, *notes, origin]) + "\n"
    print(f"\n{text}")
    path = folder / f"{name}.md"
    path.write_text(text, encoding="utf-8")
    return path


def machine() -> str:
    """One line about this machine and how busy it was."""
    packages = ", ".join(f"{package} {version(package)}" for package in ("langgraph", "langchain-core", "numpy"))
    load = f"load {os.getloadavg()[0]:.1f}, " if hasattr(os, "getloadavg") else ""
    python = f"Python {platform.python_version()}, {packages}"
    return f"{processor()}, {os.cpu_count()} cores, {load}{platform.system()} {platform.machine()}, {python}"


def processor() -> str:
    """The name of the processor, as far as the system tells."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown processor"
