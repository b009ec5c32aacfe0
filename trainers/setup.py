"""From a config file to what a training needs.

In: a path and overrides, or plain data. Out: a `PreparedTraining`: items by split, settings, places, and the system once
there is a store. No model is loaded and nothing is written here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collabsim.config.assemble import make_system, make_task
from collabsim.config.read import identity_fields, read_config, run_place
from collabsim.config.schema import Config
from collabsim.paths import user_path
from collabsim.seeds import digest

from .launch import train
from .settings import TrainConfig, parse_train
from .training_items import load_train_items

if TYPE_CHECKING:
    from collabsim.item import Item
    from collabsim.store import GenerationStore
    from collabsim.system.system import System
    from collabsim.tasks import Task

    from .metrics import TrainProgress
    from .train_result import TrainResult


@dataclass(frozen=True)
class PreparedTraining:
    """A config with a `train:` section, read."""

    config: Config
    train: TrainConfig
    task: Task
    items: tuple[Item, ...]
    """To train on; in neither `task.items` nor `task.dev`."""
    out: Path
    base: Path = Path()
    """Where relative paths of the config start."""

    def system(self, store: GenerationStore) -> System:
        """The system of the config over a generation store."""
        return make_system(self.config, store, self.base)

    def run(self, store: GenerationStore, *, resume: bool, progress: TrainProgress) -> TrainResult:
        """The training, in `out`. Raises what `train` raises."""
        return train(
            self.system(store),
            self.task,
            self.items,
            self.train,
            out=self.out,
            identity=self.identity,
            prompt=self.prompt,
            resume=resume,
            concurrency=self.concurrency,
            progress=progress,
        )

    @property
    def identity(self) -> dict[str, Any]:
        """What two trainings must share to be one, beside what `train` adds itself."""
        return {"config": identity_fields(self.config)}

    @property
    def prompt(self) -> str | None:
        """The task's own template."""
        return self.config.task.prompt

    @property
    def store(self) -> str | None:
        """File of the generation store; None is the user's own."""
        return self.config.store

    @property
    def concurrency(self) -> int:
        """Runs in flight."""
        return self.config.concurrency


def prepare(path: Path, overrides: Sequence[str] = ()) -> PreparedTraining:
    """Read a config file. Raises `ConfigError` and `DataError` for what cannot be meant."""
    path = user_path(path, "CONFIG")
    config = read_config(path, overrides)
    return prepare_config(config, path.parent, run_place(path, config.out, training_identity(config)))


def prepare_config(config: Config, base: Path, out: Path) -> PreparedTraining:
    """The same for a config that was read already; relative paths in it start from `base`."""
    train = parse_train(config.section("train"))
    task = make_task(config, base)
    return PreparedTraining(config, train, task, load_train_items(config.task, base, task, train.items), out, base)


def training_identity(config: Config) -> str:
    """Hash of the config with its `train:` section, without the keys that say where and how fast it runs."""
    section: Mapping[str, Any] = parse_train(config.section("train")).model_dump(mode="json")
    return digest([identity_fields(config), section])
