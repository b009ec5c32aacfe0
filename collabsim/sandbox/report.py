"""The questions that the sandbox is asked, and its answers.

In: texts. Out: records. An examination tests a program through calls; a script is run with its input and prints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Ending = Literal["passed", "failed", "broken", "error"]


@dataclass(frozen=True, slots=True)
class Examination:
    """A program, and tests that call it."""

    program: str
    tests: str
    """Python: assertions, or a function `check(candidate)`."""
    entry_point: str | None = None
    """Name of the program that the tests know as `candidate`, and by its own name."""
    setup: str = ""
    """Python that tests and program each start with: imports, helpers of the prompt."""


@dataclass(frozen=True, slots=True)
class Script:
    """A program that reads standard input and prints."""

    program: str
    input: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """How it went."""

    ending: Ending
    """`passed`: all tests (or: a script that ended with code 0). `failed`: the program's doing. `broken`: the tests cannot
    be run on any program. `error`: the sandbox or the machine failed; says nothing about the program."""
    reason: str = ""
    output: bytes = b""
    """What the program wrote to standard output, as far as the limit goes."""
    errors: bytes = b""
    """What it wrote to standard error."""
    cpu_seconds: float = 0.0
    """Processor time of program and tests."""
    ended_by: str = ""
    """The limit that ended it: `cpu`, `wall`, `output`, `folder`; empty otherwise."""
    waited_seconds: float = 0.0
    """Time that it was ready to run and had no processor; not counted by the limit on the clock."""
