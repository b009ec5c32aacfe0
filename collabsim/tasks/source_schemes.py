"""Opens the source that a name stands for.

In: the bare name of a known data set, `jsonl:PATH`, `reasoning_gym:NAME`, `moco:NAME`, `hub:ID`, or rows in memory. Out: a
`Source`, opened. Left out on purpose: what a source is; see `sources.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from collabsim.errors import ConfigError, nearest
from collabsim.paths import user_path
from collabsim.tasks.data_sets import DATA_SETS
from collabsim.tasks.sources import Source, read_jsonl, table_of_rows


class Address(NamedTuple):
    """What a source is opened with."""

    name: str
    """The part behind the scheme."""
    options: dict[str, Any]
    split: str
    base: Path
    fields: Mapping[str, str] | None


def open_source(
    source: str | Sequence[Mapping[str, Any]],
    *,
    options: Mapping[str, Any] | None = None,
    split: str = "test",
    base: str | Path | None = None,
    fields: Mapping[str, str] | None = None,
) -> Source:
    """The source that `source` names. Relative paths start from `base` (the config file's folder).

    Raises `ConfigError` for an unknown scheme, name, option or column, `DataError` for a file that cannot be read,
    `PrerequisiteError` for a package that is missing.
    """
    if not isinstance(source, str):
        return table_of_rows("rows", source, fields)
    scheme, _, name = source.partition(":")
    if source.strip() in DATA_SETS:
        from collabsim.tasks.known import open_known

        return open_known(source.strip(), options or {}, Path(base or "."), fields)
    if scheme not in SCHEMES or not name.strip():
        shown = ", ".join(f"{known}:..." for known in SCHEMES)
        raise ConfigError(
            f"task.source: expected {shown} or a known data set ({', '.join(DATA_SETS)}), got {source!r}"
            f"{nearest(scheme, [*SCHEMES, *DATA_SETS])}"
        )
    return SCHEMES[scheme](Address(name.strip(), dict(options or {}), split, Path(base or "."), fields))


def _open_jsonl(address: Address) -> Source:
    no_options("jsonl", address.options)
    path = address.base / user_path(address.name, "task.source")
    return table_of_rows(f"jsonl:{address.name}", read_jsonl(path), address.fields)


def no_options(scheme: str, options: Mapping[str, Any]) -> None:
    """Raises `ConfigError` for options given to a source that takes none."""
    if options:
        raise ConfigError(f"task.options: {scheme}: takes no options, got {sorted(options)}; remove them")


def _open_reasoning_gym(address: Address) -> Source:
    from collabsim.tasks.generators import GeneratorSource

    if address.fields:
        raise ConfigError("task.fields: reasoning_gym: items have no columns to name; remove it")
    return GeneratorSource(address.name, address.options)


def _open_moco(address: Address) -> Source:
    from collabsim.tasks.moco import open_moco

    no_options("moco", address.options)
    return open_moco(address.name, address.fields)


def _open_hub(address: Address) -> Source:
    from collabsim.tasks.hub_source import open_hub

    return open_hub(address.name, address.options, address.split, address.base, address.fields)


SCHEMES: dict[str, Callable[[Address], Source]] = {
    "jsonl": _open_jsonl,
    "reasoning_gym": _open_reasoning_gym,
    "moco": _open_moco,
    "hub": _open_hub,
}
