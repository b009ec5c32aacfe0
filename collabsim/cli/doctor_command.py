"""`collabsim doctor`: what this machine can run, and what to install for the rest."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from collabsim.cli.machine import Finding, model_findings, package
from collabsim.plugins import broken_points
from collabsim.protocols import registered
from collabsim.store import default_path


def run() -> None:
    """Print the findings. Always exit code 0: a missing optional part is no error."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("", "what", "found", "to do"):
        table.add_column(column, overflow="fold")
    with Console(stderr=True).status("trying vLLM and transformers, each in a process of its own"):
        rows = list(findings())
    for finding in rows:
        mark = "[yellow]-[/yellow]" if finding.remedy else "[green]ok[/green]"
        table.add_row(mark, *map(escape, finding))  # 'collabsim[local]' is no markup
    Console().print(table)


def findings() -> Iterator[Finding]:
    """Everything that is looked at; nothing that is slow to import is imported here."""
    yield Finding(
        "Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}", _python_remedy()
    )
    for name in ("langgraph", "langchain-core", "langchain-openai", "shapiq", "numpy"):
        yield package(name, f"pip install {name}")
    yield Finding("protocols", ", ".join(registered()) or "none", "" if registered() else "reinstall collabsim")
    for broken, why in broken_points():
        yield Finding(f"package {broken}", "broken", why)
    yield Finding("simulated models", "built in")
    has_key = bool(os.environ.get("OPENAI_API_KEY"))
    key_remedy = "" if has_key else "export OPENAI_API_KEY=... for api.openai.com; local servers need none"
    yield Finding("OpenAI-compatible servers", "key set" if has_key else "no OPENAI_API_KEY", key_remedy)
    yield from model_findings()
    yield package("reasoning-gym", "pip install reasoning-gym", what="reasoning_gym: tasks")
    yield package("datasets", "pip install 'collabsim[hub]'", what="hub: tasks")
    moco = find_spec("model_collaboration") is not None
    yield Finding("moco: tasks", "modelco" if moco else "missing", "" if moco else "pip install --no-deps modelco")
    yield _sandbox()
    yield _store()


def _python_remedy() -> str:
    return "" if (3, 11) <= sys.version_info[:2] <= (3, 13) else "use Python 3.11, 3.12 or 3.13"


def _sandbox() -> Finding:
    from collabsim.sandbox import sandbox_report

    report = sandbox_report()
    return Finding("sandbox for code", report.available, report.remedy)


def _store() -> Finding:
    path = default_path()
    folder = _nearest_folder(path.parent)
    free = shutil.disk_usage(folder).free / 2**30
    if not os.access(folder, os.W_OK):
        return Finding("generation store", str(path), "this folder cannot be written; set COLLABSIM_STORE or --store")
    size = f", {path.stat().st_size / 2**20:.1f} MiB" if path.exists() else ", not there yet"
    return Finding("generation store", f"{path}{size}; {free:.1f} GiB free", "" if free > 1 else "free some disk space")


def _nearest_folder(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path
