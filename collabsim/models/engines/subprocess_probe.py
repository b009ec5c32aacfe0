"""Questions to a package that are asked in a process of its own.

In: a short program. Out: its answer, or one line on why there is none. A build for another processor ends the process that
imports it, and a heavy import would stay in this one. Left out on purpose: what is asked, and for how long it holds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

_MARK = "probe "


def ask_process(program: str, seconds: float, environment: Mapping[str, str] | None = None) -> tuple[Any | None, str]:
    """(the JSON value that `program` gives to `answer`, "") or (None, why there is none, in one line).

    `environment` holds where the caller's own does not say otherwise.
    """
    answering = f"import json\ndef answer(value):\n    print('\\n{_MARK}' + json.dumps(value), flush=True)\n"
    try:
        done = subprocess.run(
            [sys.executable, "-c", answering + program],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            env={**(environment or {}), **os.environ},
        )
    except subprocess.TimeoutExpired:
        return None, f"took more than {seconds:g} s; try again when idle"
    for line in done.stdout.splitlines():
        if line.startswith(_MARK):
            return json.loads(line.removeprefix(_MARK)), ""
    if done.returncode < 0:
        return None, f"ended by signal {-done.returncode} (a build for another processor?)"
    lines = done.stderr.strip().splitlines()
    return None, lines[-1][:300] if lines else "gave no answer"
