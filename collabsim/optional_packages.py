"""Optional packages, asked for when they are needed.

In: the name of an import. Out: the module, or one line that says how to get it. Left out on purpose: version checks.
"""

from __future__ import annotations

import importlib
from typing import Any

from collabsim.errors import PrerequisiteError
from collabsim.extras import install_command


def require(package: str, purpose: str) -> Any:
    """The imported module. Raises `PrerequisiteError` when it is not installed or cannot be imported."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        lacking = getattr(error, "name", None) or package
        raise PrerequisiteError(
            f"{purpose} needs the package {lacking!r}, which cannot be imported here ({first_line(error)}); "
            f"run `make setup`, or {install_command(package)}"
        ) from error


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or its type: other libraries' messages span pages."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
