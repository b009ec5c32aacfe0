"""Marks for tests that need the packages of local engines, which the lock does not hold yet: skipped with a reason."""

from __future__ import annotations

from importlib.util import find_spec

import pytest


def requires(*packages: str) -> pytest.MarkDecorator:
    """Skip unless all packages (import names) are there."""
    missing = [package for package in packages if find_spec(package) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")
