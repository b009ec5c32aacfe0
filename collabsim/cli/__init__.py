"""The command line: `collabsim COMMAND`. Thin: every command reads flags, calls the library, and prints.

Nothing heavy is imported before a command runs. Errors that are addressed to the user are one line on standard error
and exit code 2; Ctrl-C is exit code 130; a traceback means a bug.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the `collabsim` script."""
    try:
        _run()
    except KeyboardInterrupt:  # also while modules are still being imported
        sys.exit(130)


def _run() -> None:
    from collabsim.cli.app import app
    from collabsim.errors import CollabsimError

    # A protocol or model named as `module:name` may lie in the current folder. Last, so that it shadows nothing.
    sys.path.append("")
    try:
        app(prog_name="collabsim")
    except CollabsimError as error:
        print(f"collabsim: {' '.join(str(error).splitlines())}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
