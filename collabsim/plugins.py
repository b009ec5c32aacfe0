"""Parts that installed packages add by entry points: protocols, kinds of answers, engines, schemes of models, sections.

In: the name of an entry-point group. Out: its entry points by name, and the object that one of them stands for. Nothing is
imported before it is asked for. Left out on purpose: what is built in (the registries have it), and what the objects are.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from collabsim.errors import PrerequisiteError


@lru_cache(maxsize=1)
def _all_points() -> Any:
    """`EntryPoints` of every group: reading the installed packages takes a tenth of a second, so all groups share it."""
    return entry_points()


@lru_cache(maxsize=16)
def registered(group: str) -> dict[str, EntryPoint]:
    """The entry points of `group` in all installed packages, by name."""
    return {point.name: point for point in sorted(_all_points().select(group=group))}


def broken_points() -> Iterator[tuple[str, str]]:
    """The entry points of other packages for collabsim that cannot be loaded: name of the package, and why."""
    groups = sorted(group for group in _all_points().groups if group.startswith("collabsim."))
    for group in groups:
        for point in registered(group).values():
            package = point.dist.name if point.dist else point.module
            if package == "collabsim":
                continue
            try:
                load(point, group)
            except PrerequisiteError as error:
                yield package, str(error)


def read_again() -> None:
    """Forget what was registered; installed packages are otherwise read once per process."""
    _all_points.cache_clear()
    registered.cache_clear()


def load(point: EntryPoint, what: str) -> Any:
    """The object of an entry point; messages call it a `what`.

    Raises `PrerequisiteError` when it cannot be imported, whatever its package raises: a broken package is then named in one
    line, and listings can go on without it.
    """
    try:
        return point.load()
    except Exception as error:
        told = str(error) if isinstance(error, ImportError | AttributeError) else f"{type(error).__name__}: {error}"
        raise PrerequisiteError(
            f"{what} {point.name!r} cannot be loaded from {point.value!r}: {told}; install what it needs, or reinstall its "
            "package"
        ) from error
