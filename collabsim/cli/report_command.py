"""`collabsim report`: the values of a finished run, in the terminal or as a picture of it, and its answers one by one."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any, get_args

from rich.console import Console

from collabsim.coalitions.answers_kept import read_answers
from collabsim.errors import ConfigError, StoreError, nearest
from collabsim.item import Verdict
from collabsim.paths import user_path
from collabsim.report.answers import list_answers
from collabsim.report.terminal import show_values
from collabsim.run_folder import OUTCOMES_FILE, RUN_FILE, VALUES_FILE, read_json

PICTURE_COLUMNS = 118
"""Width of the picture's terminal, in characters: the widest table fits, and a page still shows it in full."""


def run(folder: Path, *, svg: Path | None = None, as_json: bool) -> None:
    """Print `values.json` as a table, as JSON, or into the file `svg`.

    Raises `ConfigError` when the folder holds no finished run, or when both JSON and a picture are asked for;
    `StoreError` when the picture cannot be written.
    """
    if svg is not None and as_json:
        raise ConfigError("--json and --svg are two ways to show one result; give one of them")
    values = _read_values(user_path(folder, "DIR"))
    if svg is not None:
        _replace(user_path(svg, "--svg"), picture(values))
        Console().print(f"Drawn in [bold]{svg}[/bold]", highlight=False)
    elif as_json:
        sys.stdout.write(json.dumps(values, indent=1, ensure_ascii=False) + "\n")
    else:
        show_values(values, Console())


def show_answers(folder: Path, verdict: str, *, as_json: bool) -> None:
    """Print the final texts of a run with what was read in them and why they are right or not.

    Works on a run that is not finished too. Raises `ConfigError` for a folder or a verdict that does not exist.
    """
    wanted = (*get_args(Verdict), "all")
    if verdict not in wanted:
        raise ConfigError(f"--answers: expected {', '.join(wanted)}, got {verdict!r}{nearest(verdict, wanted)}")
    answers = read_answers(user_path(folder, "DIR") / OUTCOMES_FILE)
    found = [answer for answer in answers if verdict in ("all", answer.verdict)]
    if as_json:
        for answer in found:
            sys.stdout.write(json.dumps(answer._asdict(), ensure_ascii=False) + "\n")
    else:
        list_answers(found, Console())


def picture(values: Mapping[str, Any]) -> str:
    """The terminal's table as SVG text: a function of the values alone, without a date or this terminal's width."""
    console = Console(
        record=True,
        file=StringIO(),
        width=PICTURE_COLUMNS,
        color_system="truecolor",
        force_terminal=True,
        force_interactive=False,
        _environ={},
    )
    show_values(values, console)
    return console.export_svg(title=f"collabsim · {values['definitions']['protocol']}")


def _replace(path: Path, text: str) -> None:
    """Write beside the file, then replace it in one step."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, path)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}; name another file with --svg") from None
    finally:
        with suppress(OSError):  # it is not there when all went well, nor where nothing can be written
            draft.unlink()


def _read_values(folder: Path) -> dict[str, Any]:
    """The values of the finished run in `folder`."""
    advice = "give the folder that a sweep named at its end"
    if not folder.is_dir():
        raise ConfigError(f"there is no run folder {folder}; {advice}")
    if read_json(folder / RUN_FILE) is None:
        raise ConfigError(f"{folder} is not a run folder (no {RUN_FILE}); {advice}")
    values = read_json(folder / VALUES_FILE)
    if values is None:
        raise ConfigError(f"the run in {folder} has no values yet; run its sweep again to finish it")
    if not isinstance(values, dict) or not {"players", "definitions", "cost"} <= values.keys():
        raise ConfigError(f"{folder / VALUES_FILE} was not written by a sweep; {advice}")
    return values
