"""`collabsim doctor`: what this machine can run, and what to install for the rest."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from collabsim.protocols import registered
from collabsim.store import default_path


class Finding(NamedTuple):
    """One line of the report."""

    what: str
    found: str
    remedy: str = ""
    """What to do; empty when all is well."""


def run() -> None:
    """Print the findings. Always exit code 0: a missing optional part is no error."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("", "what", "found", "to do"):
        table.add_column(column, overflow="fold")
    for finding in findings():
        mark = "[yellow]-[/yellow]" if finding.remedy else "[green]ok[/green]"
        table.add_row(mark, finding.what, finding.found, finding.remedy)
    Console().print(table)


def findings() -> Iterator[Finding]:
    """Everything that is looked at; nothing is imported that is slow to import."""
    yield Finding(
        "Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}", _python_remedy()
    )
    for package in ("langgraph", "langchain-core", "langchain-openai", "shapiq", "numpy"):
        yield _package(package, f"pip install {package}")
    yield Finding("protocols", ", ".join(registered()) or "none", "" if registered() else "reinstall collabsim")
    yield Finding("simulated models", "always there")
    has_key = bool(os.environ.get("OPENAI_API_KEY"))
    key_remedy = "" if has_key else "export OPENAI_API_KEY=... for api.openai.com; local servers need none"
    yield Finding("OpenAI-compatible servers", "key set" if has_key else "no OPENAI_API_KEY", key_remedy)
    yield _package("transformers", "pip install 'collabsim[local]'", what="local models on transformers")
    yield _vllm()
    yield _package("reasoning-gym", "pip install reasoning-gym", what="reasoning_gym: tasks")
    yield _package("datasets", "pip install 'collabsim[hub]'", what="hub: tasks")
    moco = find_spec("model_collaboration") is not None
    yield Finding("moco: tasks", "modelco" if moco else "missing", "" if moco else "pip install --no-deps modelco")
    yield _sandbox()
    yield _store()


def _python_remedy() -> str:
    return "" if (3, 11) <= sys.version_info[:2] <= (3, 13) else "use Python 3.11, 3.12 or 3.13"


def _package(name: str, remedy: str, *, what: str | None = None) -> Finding:
    try:
        return Finding(what or name, f"{name} {version(name)}" if what else version(name))
    except PackageNotFoundError:
        return Finding(what or name, "missing", remedy)


def _vllm() -> Finding:
    """Tried in a process of its own: a vLLM that does not fit the machine can take the process down."""
    from collabsim.models.vllm_probe import probe_vllm

    found = probe_vllm()
    said = f"{found.version} on {found.device}" if found.works else found.version or "missing"
    return Finding("local models on vLLM", said, "" if found.works else found.problem)


def _sandbox() -> Finding:
    from collabsim.tasks.sandbox.floor import sandbox_report

    report = sandbox_report()
    return Finding("sandbox for code", report.found, report.remedy)


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
