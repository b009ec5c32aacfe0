"""Marks for tests that need packages of local engines, which not every machine can have."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest


def requires(*packages: str) -> pytest.MarkDecorator:
    """Skip, with a reason, where one of the packages (import names) is missing; with `CI=true` run, and so fail."""
    missing = [package for package in packages if find_spec(package) is None]
    skipped = bool(missing) and os.environ.get("CI") != "true"
    return pytest.mark.skipif(skipped, reason=f"needs {', '.join(missing)}")
