"""The result of a sweep, typed: `result.shapley["a"].value` instead of keys of a dictionary.

In: the content of `values.json`, which stays as it is in `SweepResult.values`. Out: the same numbers as attributes, and a
small table as `repr`. A section that the file does not have is an empty mapping or tuple, and a player about which
nothing can be said is missing from its section; only `relation` and `cost`, which every sweep writes, raise when they are
not there. Left out on purpose: computing anything (see `valuation.py`), frames and pictures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from collabsim.arguments import checked
from collabsim.coalitions.intervals import Estimate, Interval
from collabsim.coalitions.outcomes import Cost
from collabsim.coalitions.relation import Correlation, RelationVerdict
from collabsim.errors import StoreError, nearest
from collabsim.paths import user_path
from collabsim.run_folder import VALUES_FILE, read_json

if TYPE_CHECKING:
    from collabsim.coalitions.table import GameTable

NAME_WIDTH = 24
RARE = "*"


@dataclass(frozen=True, slots=True)
class Difference:
    """Two players compared in Shapley value, first minus second; the intervals hold for all pairs at once."""

    first: str
    second: str
    value: float
    interval: Interval
    differs: bool
    """Whether the interval leaves 0 out."""


@dataclass(frozen=True, slots=True)
class PairCounts:
    """Pairs of players by how their two strengths compare."""

    concordant: int
    inverted: int
    undecided: int


@dataclass(frozen=True, slots=True)
class StrengthRelation:
    """The relation of individual and compositional strength; see `relation.py` for the rules."""

    verdict: RelationVerdict
    value: Literal["shapley", "leave_one_out"]
    """The value that is taken as compositional strength."""
    pairs: PairCounts
    inverted: tuple[tuple[str, str], ...]
    """The inverted pairs by name."""
    correlations: Mapping[str, Correlation]
    """By value: `shapley`, `leave_one_out`, `shapley_after_two`."""
    spearman: float | None


@dataclass(frozen=True, slots=True)
class SweepCost(Cost):
    """Costs of a sweep, over all of its sessions."""

    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.prompt_tokens + self.completion_tokens


class Estimates(dict[str, Estimate]):
    """Estimates by name; an unknown one is told the nearest."""

    def __missing__(self, name: object) -> Estimate:
        raise KeyError(f"no entry {name!r}{nearest(name, self)}; there are {', '.join(self) or 'none'}")


@dataclass(frozen=True, repr=False)
class SweepResult:
    """The result of a sweep."""

    values: dict[str, Any]
    """The content of `values.json`."""
    table: GameTable | None = None
    """Every outcome; None for a result that was read from a file."""
    out: Path | None = None
    """The run folder; None when nothing was kept."""

    @classmethod
    def from_values(cls, values: dict[str, Any], out: Path | None = None) -> SweepResult:
        """A result without its outcomes, from what `values.json` holds."""
        return cls(values, out=out)

    @property
    def players(self) -> tuple[str, ...]:
        """Names of the players, in the order of the pool."""
        return tuple(self._required("players"))

    @property
    def n_items(self) -> int:
        """Items behind the numbers."""
        return int(self._required("n_items"))

    @property
    def dropped_items(self) -> int:
        """Items that were left out everywhere because a run on them failed."""
        return int(self.values.get("dropped_items", 0))

    @property
    def method(self) -> str:
        """`exact`, `loo`, `permutation` or `shapiq:NAME`; never `auto`."""
        return str(self._required("method"))

    @property
    def paired(self) -> bool:
        """Whether all coalitions met the same samples; False when an application called models without a seat."""
        return bool(self.values.get("paired", True))

    @property
    def efficiency_gap(self) -> float:
        """Sum of the values minus (v(all) - v(empty)); 0 for Shapley values."""
        return float(self._required("efficiency_gap"))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about what makes the numbers doubtful."""
        return tuple(self.values.get("warnings", ()))

    @property
    def definitions(self) -> Mapping[str, Any]:
        """The definitions of the numbers: protocol, options, floor, roles, seed."""
        return cast(Mapping[str, Any], self.values.get("definitions", {}))

    @property
    def rates(self) -> Mapping[str, Any]:
        """Shares of answers that could not be read or were cut, and the score of a blind guess."""
        return cast(Mapping[str, Any], self.values.get("rates", {}))

    @property
    def v(self) -> Mapping[str, float]:
        """Mean outcome by coalition (`a+b`, names in the order of the pool; nobody is the empty text)."""
        return cast(Mapping[str, float], self._required("v"))

    @cached_property
    def shapley(self) -> Mapping[str, Estimate]:
        """Player to Shapley value; empty for the method `loo`."""
        return estimates_in(self.values, "shapley")

    @cached_property
    def individual(self) -> Mapping[str, Estimate]:
        """Player to the mean score of its own answers; a node of an application has none."""
        return estimates_in(self.values, "individual")

    @cached_property
    def leave_one_out(self) -> Mapping[str, Estimate]:
        """Player to v(all) - v(all without it)."""
        return estimates_in(self.values, "leave_one_out")

    @cached_property
    def leave_one_out_split(self) -> Mapping[str, Estimate]:
        """The same, with what several redundant players share split among them; for `exact` and `loo`."""
        return estimates_in(self.values, "leave_one_out_split")

    @cached_property
    def banzhaf(self) -> Mapping[str, Estimate]:
        """Player to Banzhaf value; for `exact`."""
        return estimates_in(self.values, "banzhaf")

    @cached_property
    def interaction(self) -> Mapping[str, Estimate]:
        """Pair (`a+b`) to Shapley interaction index; for `exact`."""
        return estimates_in(self.values, "interaction")

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """All pairs of players compared in Shapley value; empty for the method `loo`."""
        pairs = self.values.get("differences") or ()
        return tuple(
            Difference(one["first"], one["second"], one["value"], Interval(*one["ci95"]), one["differs"])
            for one in pairs
        )

    @cached_property
    def relation(self) -> StrengthRelation:
        """The relation of individual and compositional strength. Raises `StoreError` when the file has none."""
        section = self._required("relation")
        correlations = {name: known_fields(Correlation, one) for name, one in section.get("correlations", {}).items()}
        return StrengthRelation(
            verdict=section["verdict"],
            value=section["value"],
            pairs=PairCounts(**known_fields(PairCounts, section["pairs"])),
            inverted=tuple((first, second) for first, second in section["inverted"]),
            correlations={name: Correlation(**one) for name, one in correlations.items()},
            spearman=section.get("spearman"),
        )

    @cached_property
    def cost(self) -> SweepCost:
        """Costs of the sweep. Raises `StoreError` when the file has none."""
        return SweepCost(**known_fields(SweepCost, self._required("cost")))

    def _required(self, name: str) -> Any:
        if self.values.get(name) is None:
            raise StoreError(f"these values have no section {name!r}: another version wrote them; run the sweep again")
        return self.values[name]

    def __repr__(self) -> str:
        """A table of the players, at most 100 columns wide."""
        title = [
            self.definitions.get("protocol", ""),
            f"{self.n_items} items",
            f"{len(self.players)} players",
            self.method,
        ]
        columns = [("alone", False), ("Shapley [95%]", True), ("leave-one-out [95%]", True)]
        sections = (self.individual, self.shapley, self.leave_one_out)
        shown = [(*column, estimates) for column, estimates in zip(columns, sections, strict=True) if estimates]
        rows = [["member", *(name for name, _, _ in shown)]]
        for player in self.players:
            rows += [[_shortened(player), *(_cell(estimates.get(player), spread) for _, spread, estimates in shown)]]
        rare = any(cell.endswith(RARE) for row in rows for cell in row)
        note = [f"{RARE} rare: fewer than 15 items inform the value; its interval is wider on purpose"] if rare else []
        return "\n".join([" · ".join(filter(None, map(str, title))), *_aligned(rows), *note])


@checked()
def read_result(folder: Path | str) -> SweepResult:
    """The result in the run folder of a finished sweep. Raises `StoreError` when it has none."""
    folder = user_path(folder, "folder")
    path = folder / VALUES_FILE
    values = read_json(path)
    if not isinstance(values, dict):
        raise StoreError(
            f"{path}: expected the values of a finished sweep, got none; run the sweep with this folder as out"
        )
    return SweepResult.from_values(values, folder)


def estimates_in(values: Mapping[str, Any], section: str) -> dict[str, Estimate]:
    """A section of `values.json` by name, without the entries about which nothing can be said."""
    entries = values.get(section) or {}
    return Estimates({name: as_estimate(entry) for name, entry in entries.items() if entry is not None})


def as_estimate(entry: Mapping[str, Any]) -> Estimate:
    """The estimate that an entry of `values.json` holds."""
    return Estimate(**{**known_fields(Estimate, entry), "ci95": tuple(entry["ci95"])})


def known_fields(record: type[Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """The part of an entry that a dataclass has fields for: files of later versions hold more."""
    return {field.name: entry[field.name] for field in fields(record) if field.name in entry}


def _shortened(name: str) -> str:
    return name if len(name) <= NAME_WIDTH else f"{name[: NAME_WIDTH - 1]}…"


def _cell(estimate: Estimate | None, spread: bool) -> str:
    if estimate is None:
        return "-"
    low, high = estimate.interval
    return f"{estimate.value:.3f}" + (f" [{low:.3f}, {high:.3f}]{RARE if estimate.rare else ''}" if spread else "")


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines: each column as wide as its widest cell, two spaces between them."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
