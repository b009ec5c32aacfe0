"""Data sets of the Hugging Face hub, or saved on disk, through `datasets`.

In: an id or a local folder, the options `config` and `revision`, and which columns hold what. Out: a source. Left out on
purpose: guessing columns beyond the usual names, and data sets that need code of their own to load.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from collabsim.errors import ConfigError, DataError, PrerequisiteError
from collabsim.pool import nearest
from collabsim.tasks.sources import DEV_SPLITS, TableSource

OPTIONS = ("config", "revision")


def open_hub(
    name: str, options: Mapping[str, Any], split: str, base: Path, fields: Mapping[str, str] | None = None
) -> TableSource:
    """A hub data set, or one saved with `save_to_disk` in a folder. Raises `PrerequisiteError` without `datasets`,
    `ConfigError` for an unknown option, split or column, `DataError` when it cannot be loaded.
    """
    for option in options:
        if option not in OPTIONS:
            raise ConfigError(
                f"task.options: hub: has no option {option!r}{nearest(option, OPTIONS)}; it has {OPTIONS}"
            )
    try:
        import datasets
    except ImportError as error:
        raise PrerequisiteError("hub: sources need the package datasets; get it with: pip install datasets") from error
    loaded = _load(datasets, name, options, base)
    tables = {str(key): loaded[key] for key in loaded} if isinstance(loaded, Mapping) else {"": loaded}
    if split not in tables and "" not in tables:
        raise ConfigError(
            f"task.split: hub:{name} has no split {split!r}{nearest(split, tables)}; it has {', '.join(tables)}"
        )
    wanted = {key: table for key, table in tables.items() if key in ("", split, *DEV_SPLITS)}
    known = list(next(iter(wanted.values())).column_names)
    return TableSource(f"hub:{name}", {key: _rows(table) for key, table in wanted.items()}, fields=fields, known=known)


def _load(datasets: Any, name: str, options: Mapping[str, Any], base: Path) -> Any:
    folder = base / Path(name).expanduser()
    try:
        if (folder / "state.json").exists() or (folder / "dataset_dict.json").exists():
            return datasets.load_from_disk(str(folder))
        place = str(folder) if folder.is_dir() else name
        return datasets.load_dataset(place, options.get("config"), revision=options.get("revision"))
    except Exception as error:  # `datasets` raises errors of a dozen libraries
        reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
        raise DataError(
            f"cannot load hub:{name}: {reason}; check the id, the network, or give a local folder"
        ) from error


def _rows(table: Any) -> list[dict[str, Any]]:
    """Rows as plain objects; class labels by name."""
    names = {column: feature.names for column, feature in table.features.items() if hasattr(feature, "names")}
    rows = []
    for row in table:
        labels = {
            column: known[row[column]]
            for column, known in names.items()
            if isinstance(row[column], int) and row[column] >= 0
        }
        rows.append({**row, **labels})
    return rows


def _is_label(value: Any) -> bool:
    return isinstance(value, int) and value >= 0  # -1 marks a hidden label
