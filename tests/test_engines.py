"""A test that needs what a machine lacks is skipped there, and fails in CI."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

TESTS = """
from engines import requires

@requires("json")
def test_with_what_is_there():
    import json

@requires("json", "no_such_package")
def test_with_what_is_missing():
    import no_such_package
"""


@pytest.mark.parametrize(
    ("environment", "code", "words"),
    [({}, 0, ["1 passed, 1 skipped", "needs no_such_package"]), ({"CI": "true"}, 1, ["1 failed, 1 passed"])],
)
def test_a_missing_package_skips_a_test_on_a_users_machine_and_fails_it_in_ci(tmp_path, environment, code, words):
    (tmp_path / "test_some.py").write_text(TESTS)
    surroundings = {name: value for name, value in os.environ.items() if name != "CI"} | environment
    search = os.path.dirname(__file__)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", "-o", f"pythonpath={search}", str(tmp_path)],
        cwd=tmp_path,
        env=surroundings,
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stdout
    assert all(word in done.stdout for word in words)
