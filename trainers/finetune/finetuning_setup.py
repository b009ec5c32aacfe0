"""From a config file to what `finetune` needs, and from its result to a config file that `sweep` takes.

In: a path and overrides; a result. Out: a `PreparedFinetuning`; `tuned.yaml`, which is the config with the new models in
its seats. Nothing is loaded here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from collabsim.config.assemble import make_pool, make_task
from collabsim.config.read import identity_fields, read_config, run_place
from collabsim.config.schema import PLACEMENT, Config
from collabsim.context import Limits
from collabsim.paths import user_path
from collabsim.run_folder import write_text
from collabsim.seeds import digest

from ..training_items import load_train_items
from .finetuning_settings import FinetuneConfig, parse_finetune

if TYPE_CHECKING:
    from collabsim.item import Item
    from collabsim.pool import Pool
    from collabsim.tasks import Task

TUNED_FILE = "tuned.yaml"


@dataclass(frozen=True)
class PreparedFinetuning:
    """A config with what `finetune` reads of it."""

    config: Config
    settings: FinetuneConfig
    task: Task
    items: tuple[Item, ...]
    """To debate and learn from; in neither `task.items` nor `task.dev`."""
    out: Path
    base: Path
    """Where relative paths of the config start."""

    @property
    def pool(self) -> Pool:
        """The pool of the config; models load on their first call."""
        return make_pool(self.config.pool)

    @property
    def limits(self) -> Limits:
        """What a debate may do at the border of a window."""
        return Limits(on_overflow=self.config.sweep.on_overflow)

    @property
    def identity(self) -> dict[str, Any]:
        """What two fine-tunings must share to be one, beside what the recipe adds itself."""
        return {"config": identity_fields(self.config)}

    def write_tuned(self, specs: Mapping[str, str]) -> Path:
        """Write the config with new models in its seats, seat to folder. Raises `StoreError` when it cannot be written."""
        path = self.out / TUNED_FILE
        text = yaml.safe_dump(tuned_config(self.config, self.base, specs), sort_keys=False, allow_unicode=True)
        write_text(path, f"# The pool that `collabsim finetune` made: sweep it.\n{text}")
        return path


def prepare_finetuning(path: Path, overrides: Sequence[str] = ()) -> PreparedFinetuning:
    """Read a config file. Raises `ConfigError` and `DataError` for what cannot be meant.

    Where the config's protocol is a debate, its options are those of the debates, unless `finetune.debate` has others.
    """
    path = user_path(path, "CONFIG")
    config = read_config(path, overrides)
    section = dict(config.section("finetune") or {})
    if config.protocol.name == "debate":
        own = {key: value for key, value in config.protocol.options.items() if key not in ("final", "verdict")}
        section = {"debate": own, **section}
    settings = parse_finetune(section)
    task = make_task(config, path.parent)
    items = load_train_items(config.task, path.parent, task, settings.items)
    key = digest([identity_fields(config), settings.model_dump(mode="json")])
    out = run_place(path, config.out, key)
    return PreparedFinetuning(config, settings, task, items, out, path.parent)


def tuned_config(config: Config, base: Path, specs: Mapping[str, str]) -> dict[str, Any]:
    """The config as the user wrote it, with `specs` in its seats, no training and no places, readable from any folder."""
    left_out = {*PLACEMENT, *config.sections} - {"store", "concurrency"}
    data = config.model_dump(mode="json", exclude_unset=True, exclude=left_out)
    for name, spec in specs.items():
        data["pool"][name] = {key: value for key, value in data["pool"][name].items() if key != "revision"} | {
            "model": spec
        }
    scheme, colon, name = config.task.source.partition(":")
    if colon and name.strip() and (path := base / user_path(name.strip(), "task.source")).exists():
        data["task"]["source"] = f"{scheme}:{path.resolve()}"
    return data
