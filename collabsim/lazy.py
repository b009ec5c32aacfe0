"""Doors of rooms: public names of a package that are imported from their modules on first use.

In: the name of a package, and which of its modules holds which public names. Out: the package's `__getattr__` and `__dir__`
(PEP 562). Type checkers read the imports that stand beside it under `TYPE_CHECKING`. Nothing is kept in the package: a name
is looked up in its module each time, so that a test that replaces it there replaces it everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, modules: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of `package`, from module (relative to it) -> the public names that it holds.

    To be assigned under `if not TYPE_CHECKING:`, lest type checkers take every name for granted.
    """
    homes = {name: f"{package}.{module}" for module, names in modules.items() for name in names}

    def module_getattr(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    def module_dir() -> list[str]:
        return sorted(homes)

    return module_getattr, module_dir
