"""`collabsim report`: the values of a finished run, in the terminal."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rich.console import Console

from collabsim.errors import ConfigError
from collabsim.report.terminal import show_values
from collabsim.run_folder import RUN_FILE, VALUES_FILE, read_json


def run(folder: Path, *, as_json: bool) -> None:
    """Print `values.json` as a table. Raises `ConfigError` when the folder holds no finished run."""
    values = read_json(folder / VALUES_FILE)
    if values is None:
        raise ConfigError(_what_is_missing(folder))
    if as_json:
        sys.stdout.write(json.dumps(values, indent=1, ensure_ascii=False) + "\n")
    else:
        show_values(values, Console())


def _what_is_missing(folder: Path) -> str:
    if not folder.is_dir():
        return f"there is no run folder {folder}; give the folder that a sweep named at its end"
    if read_json(folder / RUN_FILE) is None:
        return f"{folder} is not a run folder (no {RUN_FILE}); give the folder that a sweep named at its end"
    return f"the run in {folder} has no values yet; run its sweep again to finish it"
