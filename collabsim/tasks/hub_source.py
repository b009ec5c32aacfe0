"""Data sets of the Hugging Face hub, or saved on disk, through `datasets`.

In: an id or a local folder, the options `config` and `revision`, and which columns hold what. Out: a source. Left out on
purpose: guessing columns beyond the usual names, and data sets that need code of their own to load.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from collabsim.errors import ConfigError, DataError, PrerequisiteError, nearest
from collabsim.extras import install_command
from collabsim.paths import user_path
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
    loaded = _load(_datasets(), name, options, base)
    tables = {str(key): loaded[key] for key in loaded} if isinstance(loaded, Mapping) else {"": loaded}
    if split not in tables and "" not in tables:
        raise ConfigError(
            f"task.split: hub:{name} has no split {split!r}{nearest(split, tables)}; it has {', '.join(tables)}"
        )
    wanted = {key: table for key, table in tables.items() if key in ("", split, *DEV_SPLITS)}
    known = list(next(iter(wanted.values())).column_names)
    return TableSource(f"hub:{name}", {key: _rows(table) for key, table in wanted.items()}, fields=fields, known=known)


def read_splits(
    name: str, configs: Sequence[str], splits: Mapping[str, str], revision: str | None, base: Path
) -> dict[str, list[dict[str, Any]]]:
    """Rows of some splits over some configurations (`*` for all), under our names for the splits.

    `splits`: our name to the hub's. With several configurations a row tells its own in `config`. Raises like `open_hub`.
    """
    datasets = _datasets()
    names: Sequence[str | None] = configs or (None,)
    if "*" in configs:
        names = _config_names(datasets, name, revision, base)
    tables: dict[str, list[dict[str, Any]]] = {ours: [] for ours in splits}
    for config in names:
        loaded = _load(datasets, name, {"config": config, "revision": revision}, base)
        for ours, theirs in splits.items():
            if theirs not in loaded:
                raise DataError(
                    f"hub:{name} has no split {theirs!r}, only {', '.join(loaded)}; give task.options.revision"
                )
            own = {"config": config} if len(names) > 1 else {}
            tables[ours] += [{**row, **own} for row in _rows(loaded[theirs])]
    return tables


def _datasets() -> Any:
    try:
        import datasets
    except ImportError as error:
        raise PrerequisiteError(
            f"hub: sources need the package datasets; get it with: {install_command('datasets')}"
        ) from error
    return datasets


def _config_names(datasets: Any, name: str, revision: str | None, base: Path) -> Sequence[str | None]:
    """All configurations of a set, or the folders of one that is saved with a folder for each."""
    folder = base / user_path(name, "task.source")
    if saved := sorted(path.name for path in folder.glob("*") if _is_saved(path)):
        return saved
    if _is_saved(folder):
        return [None]
    with _one_line_errors(name):
        return list(datasets.get_dataset_config_names(name, revision=revision))


def _is_saved(folder: Path) -> bool:
    """Whether `save_to_disk` wrote this folder."""
    return (folder / "state.json").exists() or (folder / "dataset_dict.json").exists()


@contextmanager
def _one_line_errors(name: str) -> Iterator[None]:
    """Whatever `datasets` raises (errors of a dozen libraries) as a `DataError` of one line."""
    try:
        yield
    except Exception as error:
        reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
        raise DataError(
            f"cannot load hub:{name}: {reason}; check the id, the network, or give a local folder"
        ) from error


def _load(datasets: Any, name: str, options: Mapping[str, Any], base: Path) -> Any:
    folder, config = base / user_path(name, "task.source"), options.get("config")
    with _one_line_errors(name):
        for place in (folder / str(config), folder):
            if _is_saved(place):
                return datasets.load_from_disk(str(place))
        return datasets.load_dataset(str(folder) if folder.is_dir() else name, config, revision=options.get("revision"))


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
