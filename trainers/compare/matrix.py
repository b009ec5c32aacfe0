"""The matrix of a comparison: objectives x protocols x tasks x seeds.

In: a config whose `compare:` section names variants of the rest. Out: one whole config for each cell. A variant is a piece
of config that is laid over the file: `{protocol: {name: debate}, train: {seat: a}}`. Left out on purpose: running it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field

from collabsim.config.read import identity_fields, parse_config, parse_section, read_config, run_place
from collabsim.config.schema import Config, Section
from collabsim.errors import ConfigError
from collabsim.paths import user_path
from collabsim.pool import SEAT_NAME
from collabsim.seeds import digest

from ..settings import parse_train

REPLACED = ("options", "roles", "pool", "helpers")
"""Keys whose mapping a variant replaces as a whole: old options mean nothing to a new protocol."""


class CompareConfig(Section):
    """The `compare:` section."""

    objectives: list[str] | dict[str, dict[str, Any]] = Field(min_length=1)
    """Names, or names with what to lay over `train:` (`{gentle: {objective: system, lr: 1.0e-6}}`)."""
    protocols: dict[str, dict[str, Any]] = Field(min_length=1)
    """Names with what to lay over the config (`{talk: {protocol: {name: debate}}, vote: {}}`)."""
    tasks: dict[str, dict[str, Any]] = Field(min_length=1)
    """Names with what to lay over the config (`{sums: {}, more: {task: {limit: 200}}}`)."""
    seeds: list[int] = Field(default=[0], min_length=1)
    """Each is `train.seed` of one training of every objective in every protocol on every task."""
    rates: tuple[float, ...] = ()
    """Learning rates, the same for every objective: each objective takes, in each protocol, the one that is best on dev in
    trainings on the first task and seed. Empty: `train.lr`."""


class Cell(NamedTuple):
    """One training of the matrix."""

    protocol: str
    task: str
    objective: str
    seed: int

    @property
    def setting(self) -> str:
        """Protocol and task: what objectives are compared within."""
        return f"{self.protocol} · {self.task}"

    @property
    def folder(self) -> str:
        """Name of its folder."""
        return f"{self.protocol}-{self.task}-{self.objective}-{self.seed}"


@dataclass(frozen=True)
class Matrix:
    """A comparison, read and checked."""

    cells: tuple[Cell, ...]
    configs: Mapping[Cell, Config]
    objectives: tuple[str, ...]
    seeds: tuple[int, ...]
    rates: tuple[float, ...]
    """Learning rates to choose from on dev; none: each cell has its own."""
    base: Path
    """Where relative paths in the config start."""
    out: Path
    store: str | None
    identity: dict[str, Any]

    def with_train(self, cell: Cell, **settings: Any) -> Config:
        """The config of a cell with other settings of its training."""
        config = self.configs[cell]
        return config.model_copy(update={"train": _laid_over(config.section("train") or {}, settings)})

    @property
    def settings(self) -> list[str]:
        """Names of all settings, in order."""
        return list(dict.fromkeys(cell.setting for cell in self.cells))


def read_matrix(path: Path, overrides: Sequence[str] = ()) -> Matrix:
    """Read a config with a `compare:` section. Raises `ConfigError` for a cell that cannot be meant, before any is run."""
    path = user_path(path, "CONFIG")
    config = read_config(path, overrides)
    section = _section(config)
    plain = config.model_dump(mode="json", exclude_unset=True, exclude={"compare"})
    arms = section.objectives
    named = {name: {"objective": name} for name in arms} if isinstance(arms, list) else dict(arms)
    configs = {}
    for cell, patch in _cells(section, named):
        data = plain
        for part in patch:
            data = _laid_over(data, part)
        configs[cell] = parse_config(data, f"{path} ({cell.setting}, {cell.objective})")
        parse_train(configs[cell].section("train"))
    sections = {"compare": section.model_dump(mode="json"), "train": config.section("train")}
    identity = {"config": identity_fields(config), **sections}
    out = run_place(path, config.out, digest(identity))
    seeds, rates = tuple(section.seeds), tuple(section.rates)
    if rates:
        _check_choosable(next(iter(configs.values())))
    return Matrix(tuple(configs), configs, tuple(named), seeds, rates, path.parent, out, config.store, identity)


def _check_choosable(config: Config) -> None:
    if config.task.dev is None or not parse_train(config.section("train")).eval.every:
        raise ConfigError("compare.rates: rates are chosen on dev; expected task.dev and train.eval.every above 0")


def _section(config: Config) -> CompareConfig:
    given = config.section("compare")
    if given is None:
        raise ConfigError("expected a section `compare:` with objectives, protocols and tasks, got none; add it")
    section = parse_section(CompareConfig, given, "compare")
    for name in (*section.objectives, *section.protocols, *section.tasks):
        if not SEAT_NAME.fullmatch(name):
            raise ConfigError(f"compare: {name!r} names a folder; use letters, digits, '_', '.', '-' only")
    return section


def _cells(
    section: CompareConfig, arms: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[Cell, list[Mapping[str, Any]]]]:
    """Each cell with what is laid over the config; seeds last, so that every setting has a result early."""
    for seed in section.seeds:
        for protocol, protocol_patch in section.protocols.items():
            for task, task_patch in section.tasks.items():
                for objective, arm in arms.items():
                    patch: list[Mapping[str, Any]] = [protocol_patch, task_patch, {"train": arm}]
                    patch.append({"train": {"seed": seed}})
                    yield Cell(protocol, task, objective, seed), patch


def _laid_over(base: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `patch` laid over it, section by section; a new `protocol.name` drops the old one's options."""
    merged = dict(base)
    for key, value in patch.items():
        old = merged.get(key)
        whole = key in REPLACED or (isinstance(value, Mapping) and "name" in value and key == "protocol")
        merged[key] = (
            _laid_over(old, value) if isinstance(old, dict) and isinstance(value, Mapping) and not whole else value
        )
    return merged
