"""Turns what a worker saw, and the message of the tests, into a report.

In: how the processes ended, and the tests' message, if it came. Out: a `Report`. Nothing counts as passed but the nonce of
this very examination together with the word that it passed. What the kernel ended for its limits is the program's doing;
a kill that nobody here ordered is the machine's.
"""

from __future__ import annotations

import base64
import signal
from typing import Any

from .limits import Limits
from .report import Report

_BY_LIMIT = {
    "wall": "took longer than {wall_seconds:g} s by the clock",
    "output": "printed more than {output_kb} KiB",
    "folder": "wrote more than {folder_mb} MiB or {folder_entries} files",
    "cpu": "took more than {cpu_seconds} s of processor time",
}


def of_examination(seen: dict[str, Any], message: Any, nonce: str, limits: Limits) -> Report:
    """The report of a program that was tested; `said` is the tests' message, None when none came."""
    common = _common(seen)
    if seen["fault"]:
        return Report("error", f"the program could not be confined: {seen['fault']}", **common)
    mine = isinstance(message, dict) and message.get("nonce") == nonce
    if mine and message.get("passed") is True:
        return Report("passed", **common)
    if mine and message.get("broken") is True:
        return Report("broken", str(message["reason"]), **common)
    limit = _limit_passed(seen, limits)
    if limit:
        return Report("failed", _in_words(limit, limits), **{**common, "ended_by": limit})
    if _killed_from_outside(seen):
        return Report("error", "a process of the sandbox was killed from outside; perhaps memory ran out", **common)
    crash = _crash(seen["ends"].get("program"))
    if mine:
        reason = str(message.get("reason", "failed"))
        return Report("failed", f"{reason} ({crash})" if crash and "ended" in reason else reason, **common)
    return Report("failed", crash or "the tests ended without a result, which the program's answers caused", **common)


def of_script(seen: dict[str, Any], limits: Limits) -> Report:
    """The report of a script: passed when it ended by itself with code 0."""
    common = _common(seen)
    if seen["fault"]:
        return Report("error", f"the program could not be confined: {seen['fault']}", **common)
    limit = _limit_passed(seen, limits)
    if limit:
        return Report("failed", _in_words(limit, limits), **{**common, "ended_by": limit})
    if _killed_from_outside(seen):
        return Report("error", "a process of the sandbox was killed from outside; perhaps memory ran out", **common)
    code = seen["ends"]["program"]["code"]
    if code == 0:
        return Report("passed", **common)
    last = common["errors"].decode("utf-8", "replace").strip().splitlines()[-1:] or [""]
    reason = _crash(seen["ends"]["program"])
    return Report("failed", f"{reason}: {last[0][:200]}" if code > 0 else reason, **common)


def _common(seen: dict[str, Any]) -> dict[str, Any]:
    cpu = sum(end["cpu"] for end in seen["ends"].values())
    output, errors = map(base64.b64decode, seen["printed"])
    return {
        "output": output,
        "errors": errors,
        "cpu_seconds": round(cpu, 4),
        "waited_seconds": round(seen["waited"], 4),
    }


def _limit_passed(seen: dict[str, Any], limits: Limits) -> str:
    """The limit that ended the program or its tests; empty when none did."""
    for end in seen["ends"].values():
        ignored = end["code"] == -signal.SIGKILL and end["cpu"] > limits.cpu_seconds + 0.5  # the kernel's second word
        if end["code"] == -signal.SIGXCPU or ignored:
            return "cpu"
    return str(seen["ended_by"])


def _killed_from_outside(seen: dict[str, Any]) -> bool:
    """Whether a process was killed that neither the worker nor a limit ended; a program cannot send SIGKILL itself."""
    return any(end["code"] == -signal.SIGKILL and not end["killed"] for end in seen["ends"].values())


def _crash(end: dict[str, Any] | None) -> str:
    """The signal or exit code by which a program ended itself; empty for a program that was ended."""
    if end is None or end["killed"]:
        return ""
    if end["code"] < 0:
        return f"crashed: {signal.Signals(-end['code']).name}"
    return f"exit code {end['code']}"


def _in_words(limit: str, limits: Limits) -> str:
    return _BY_LIMIT[limit].format(**{name: getattr(limits, name) for name in Limits.__slots__})
