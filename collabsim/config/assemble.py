"""From a config to what it describes: the pool, the task, the system.

In: a `Config` and the folder that relative paths in it start from. Out: live objects. No engine is started here: models
load on their first call.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from collabsim.config.schema import Config, SeatConfig, TaskConfig
from collabsim.context import Limits
from collabsim.models.resolve import resolve_model
from collabsim.paths import user_path
from collabsim.pool import Pool, Seat
from collabsim.store import GenerationStore, default_path
from collabsim.system.system import System
from collabsim.tasks import Task, load_task

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


def make_pool(seats: Mapping[str, SeatConfig]) -> Pool:
    """A pool of the described models; seats with equal descriptions of a model share one object, and so one engine."""
    models: dict[str, BaseChatModel] = {}
    return Pool({name: _make_seat(name, config, models) for name, config in seats.items()})


def _make_seat(name: str, config: SeatConfig, models: dict[str, BaseChatModel]) -> Seat:
    spec = config.model_dump_json(include={"model", "engine", "base_url", "revision", "options"})
    if spec not in models:
        models[spec] = resolve_model(
            config.model,
            name=name,
            base_url=config.base_url,
            revision=config.revision,
            options=config.options,
            engine=config.engine,
        )
    return Seat(
        name,
        models[spec],
        sampling=config.sampling,
        system=config.system,
        examples=config.examples,
        description=config.description,
    )


def make_task(config: Config, base: Path) -> Task:
    """The task of the config; relative paths start from `base`."""
    return load_section(config.task, base)


def load_section(task: TaskConfig, base: Path) -> Task:
    """The task that a `task:` section describes; relative paths start from `base`. Raises what `load_task` raises."""
    return load_task(
        task.source,
        base=base,
        options=task.options,
        split=task.split,
        limit=task.limit,
        seed=task.seed,
        filter=task.filter,
        dev=task.dev.model_dump() if task.dev else None,
        floor=task.floor,
        prompt=task.prompt,
        fields=task.fields,
        kind=task.kind,
        shuffle_options=task.shuffle_options,
        self_test=task.self_test,
    )


def make_system(config: Config, store: GenerationStore, base: Path = Path()) -> System:
    """The system of the config, not fitted yet; relative paths start from `base`."""
    if config.protocol.is_graph:
        from collabsim.config.applications import make_graph_system

        return make_graph_system(config, make_pool(config.pool), make_pool(config.helpers), store, base)
    return System(
        protocol=config.protocol.name,
        pool=make_pool(config.pool),
        options=config.protocol.options,
        helpers=make_pool(config.helpers),
        roles=config.protocol.roles,
        order=config.protocol.order,
        alone=config.sweep.alone,
        absent=config.sweep.absent,
        store=store,
        limits=Limits(on_overflow=config.sweep.on_overflow),
    )


def open_store(named: str | None) -> GenerationStore:
    """The generation store that `store:` names, or the user's own. Raises `ConfigError` and `StoreError`."""
    return GenerationStore(user_path(named, "store") if named else default_path())
