"""Folders that a program fills: how much is in them, and how they are removed whatever is in them.

In: paths. Out: sizes; nothing left. A program may have made folders that are nested without end, or closed to their owner.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any


def usage(folder: Path, most_entries: int) -> tuple[int, int]:
    """Bytes and number of entries beneath `folder`; counting ends above `most_entries`."""
    size = entries = 0
    waiting = [str(folder)]
    while waiting and entries <= most_entries:
        with suppress(OSError), os.scandir(waiting.pop()) as listing:
            for entry in listing:
                entries += 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    with suppress(OSError):  # removed meanwhile
                        size += entry.stat(follow_symlinks=False).st_blocks * 512
                if entries > most_entries:
                    break
    return size, entries


def remove(folder: Path) -> None:
    """Remove `folder` and all that is in it, links themselves and not what they lead to. Never raises `OSError`."""
    with suppress(OSError, RecursionError):
        shutil.rmtree(folder, onerror=_open_up_within(folder))
    if folder.exists():  # nested too deeply for names or recursion
        subprocess.run(["rm", "-rf", "--", str(folder)], check=False, capture_output=True)


def _open_up_within(top: Path) -> Callable[[Callable[..., Any], str, Any], None]:
    """What `rmtree` does with an entry that resists: open its folder and try again. Nothing above `top` is changed."""

    def open_up(remove_entry: Callable[..., Any], path: str, _: Any) -> None:
        with suppress(OSError):
            if top in Path(path).parents:  # `path` is a str or a Path: never compare it as it comes
                os.chmod(os.path.dirname(path), 0o700)
            if os.path.isdir(path) and not os.path.islink(path):
                os.chmod(path, 0o700)
                shutil.rmtree(path, ignore_errors=True)
            else:
                remove_entry(path)

    return open_up
