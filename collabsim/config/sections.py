"""Sections of a config that commands of installed packages read: `train:`, `compare:`, `finetune:` and those of others.

In: the entry-point group `collabsim.sections`, the section's name -> its schema, a pydantic model. Out: the names, and
a schema when it is needed. Such a section is no part of what a sweep measures; its command checks it with
`parse_section`.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING

from collabsim.plugins import load, registered

if TYPE_CHECKING:
    from pydantic import BaseModel

GROUP = "collabsim.sections"


def installed_sections() -> dict[str, EntryPoint]:
    """Entry points of the sections that installed packages read, by name; nothing is loaded."""
    return registered(GROUP)


def section_schema(name: str) -> type[BaseModel]:
    """The schema of an installed section. Raises `KeyError` for another, `PrerequisiteError` when it cannot be
    loaded."""
    schema: type[BaseModel] = load(installed_sections()[name], "the section")
    return schema
