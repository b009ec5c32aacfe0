"""Sections of a config that commands of installed packages read: `train:`, `compare:`, `finetune:` and those of others.

In: the entry-point group `collabsim.sections`, the section's name -> its schema, a pydantic model. Out: the names, and
a schema when it is needed. Such a section is no part of what a sweep measures; its command checks it with
`parse_section`.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from collabsim.errors import PrerequisiteError

if TYPE_CHECKING:
    from pydantic import BaseModel

GROUP = "collabsim.sections"


@lru_cache(maxsize=1)
def installed_sections() -> dict[str, EntryPoint]:
    """Entry points of the sections that installed packages read, by name; nothing is loaded."""
    return {point.name: point for point in sorted(entry_points(group=GROUP))}


def section_schema(name: str) -> type[BaseModel]:
    """The schema of an installed section. Raises `KeyError` for another, `PrerequisiteError` when it cannot be
    loaded."""
    point = installed_sections()[name]
    try:
        schema: Any = point.load()
    except (ImportError, AttributeError) as error:
        raise PrerequisiteError(
            f"the section {name!r} cannot be loaded from {point.value!r}: {error}; reinstall its package"
        ) from error
    return schema  # type: ignore[no-any-return]
