"""What programs leave behind: processes, and shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_SHARED = "/dev/shm/"


def marked(mark: str) -> set[int]:
    """Ids of processes that have inherited `mark` in their environment."""
    found = {place for place, content in _of_all_processes("environ") if mark.encode() in content}
    return {int(place.parent.name) for place in found}


def shared_memory() -> set[str]:
    """Names of all blocks of shared memory on this machine."""
    return {path.name for path in Path(_SHARED).glob("*")}


def left_in_shared_memory(before: set[str]) -> set[str]:
    """Blocks that were not there `before` and that no running process uses: those of other programs are in use."""
    new = shared_memory() - before
    maps = b"".join(content for _, content in _of_all_processes("maps")) if new else b""
    return {name for name in new if f"{_SHARED}{name}".encode() not in maps} & shared_memory()


def _of_all_processes(file: str) -> Iterator[tuple[Path, bytes]]:
    for place in Path("/proc").glob(f"[0-9]*/{file}"):
        try:
            yield place, place.read_bytes()
        except OSError:
            continue  # it has ended by now
