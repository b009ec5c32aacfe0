"""The schema of a config file. Every key a user may write, its meaning and its default; unknown keys are refused.

Left out on purpose: the options of models, protocols and data sets, which are checked by their owners, and the sections
of commands that other packages bring (`train`, `compare`, `finetune`), which are checked by these commands.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from collabsim.request import Sampling

PLACEMENT = ("store", "out", "concurrency", "executor", "train", "compare", "finetune")
"""Keys that say where and how a sweep runs, not what it measures: no part of a run's identity."""

GRAPH = "graph:"
"""How the name of a protocol begins that is an existing application."""


class Section(BaseModel):
    """A strict, frozen part of the config."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class SeatConfig(Section):
    """One member of the pool, or one helper."""

    model: str
    """`simulated:`, `openai:NAME`, `python:package.module:attribute`, ..."""
    engine: str = "auto"
    base_url: str | None = None
    revision: str | None = None
    """The user's own word for a server's weights; changes the identity of everything generated."""
    options: dict[str, Any] = {}
    sampling: Sampling = Sampling()
    system: str | None = None
    examples: tuple[tuple[str, str], ...] = ()
    """Few-shot pairs: `[question, answer]` or `{question: ..., answer: ...}`."""
    description: str = ""
    """What a router is told about this seat."""

    @field_validator("examples", mode="before")
    @classmethod
    def _pairs(cls, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return value
        return tuple(
            (entry.get("question"), entry.get("answer")) if isinstance(entry, dict) else entry for entry in value
        )


class ProtocolConfig(BaseModel):
    """A protocol by name; every other key is an option of that protocol.

    `graph: "package.module:app"` or `graph: "file.py:app"` in the place of a name is an existing LangGraph application;
    its other keys are those of `ApplicationConfig`.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str
    roles: dict[str, str | list[str]] = {}
    """Role to a helper, a seat, or seats by preference."""
    order: list[str] | None = None
    """Fixed order of the seats; by default every item has its own."""

    @model_validator(mode="before")
    @classmethod
    def _application_is_its_own_name(cls, value: Any) -> Any:
        if isinstance(value, dict) and "graph" in value and "name" not in value:
            return {"name": f"{GRAPH}{value['graph']}", **value}
        return value

    @property
    def is_graph(self) -> bool:
        """Whether this is an existing application."""
        return self.name.startswith(GRAPH)

    @property
    def options(self) -> dict[str, Any]:
        """All keys that are not of the protocol section itself."""
        return dict(self.model_extra or {})


class ApplicationConfig(Section):
    """An existing LangGraph application as a system: see `from_graph`. Functions are `package.module:name`."""

    graph: str
    """`package.module:app` or `file.py:app`: a StateGraph, a compiled one, or a function that makes one."""
    players: list[str] | None = None
    """Nodes and seats; default every node."""
    output: str | None = None
    """Function of the final state; default the last AI message."""
    input: str | None = None
    """Function of the item's view; default its messages."""
    absent: dict[str, Any] = {}
    """Node to `skip`, `pass`, `goto:NODE`, an update, or a function in its place; seat to a text in its place."""
    label: str | None = None
    """What reports call the application."""
    revision: str = ""
    """The user's own word for the version of its code and prompts."""
    recursion_limit: int | None = Field(default=None, gt=0)
    on_limit: Literal["no_answer", "fail"] = "no_answer"
    memory: bool = False
    """The application's own checkpointer and store are used, with a thread for each run."""


class DevConfig(Section):
    """Items for fitting and choosing, disjoint from the evaluated ones by content."""

    limit: int = Field(gt=0)
    seed: int = 0


class TaskConfig(Section):
    """The items that a system is run on."""

    source: str
    """A known data set (`gsm8k`), `jsonl:PATH`, `reasoning_gym:NAME`, `moco:NAME`, `hub:ID`."""
    options: dict[str, Any] = {}
    split: str = "test"
    limit: int | None = None
    seed: int = 0
    filter: dict[str, Any] | None = None
    dev: DevConfig | None = None
    floor: Literal["zero", "chance"] = "zero"
    """v(empty): 0, or the score of a blind guess."""
    prompt: str | None = None
    """Template with {question} and {choices} in place of the task's own prompt."""
    fields: dict[str, str] | None = None
    """Which columns of a hub data set hold question, answer, choices."""
    kind: str | None = None
    shuffle_options: bool | None = None
    """Whether each item's options come in an order of its own; by default where a set always has the same one right."""
    self_test: Literal["sample", "all", "none"] = "sample"
    """How many reference solutions are run at load, where answers are programs."""


class SweepConfig(Section):
    """What is evaluated and how it is summed up."""

    method: str = "auto"
    """`exact`, `loo`, `permutation`, `shapiq:NAME`; `auto` is exact up to 6 players and permutation above."""
    seed: int = 0
    players: Literal["seats", "models"] = "seats"
    budget: int | None = Field(default=None, gt=0)
    """Coalitions per item for `shapiq:` methods; default four per player."""
    alone: Literal["answers", "floor"] = "answers"
    absent: str = "remove"
    """`remove`, or `replace:HELPER`."""
    on_missing: Literal["refuse", "drop_items"] = "refuse"
    on_overflow: Literal["fail", "no_answer"] = "fail"


class Config(Section):
    """A whole config file."""

    pool: dict[str, SeatConfig]
    helpers: dict[str, SeatConfig] = {}
    protocol: ProtocolConfig
    task: TaskConfig
    sweep: SweepConfig = SweepConfig()
    train: dict[str, Any] | None = None
    """Read by the `train` command."""
    compare: dict[str, Any] | None = None
    """Read by the `compare` command."""
    finetune: dict[str, Any] | None = None
    """Read by the `finetune` command."""
    store: str | None = None
    """File of the generation store; default in the user's cache folder."""
    out: str | None = None
    """Run folder; default `runs/<config stem>-<8 hex of the config>`."""
    concurrency: int = Field(default=100, gt=0)
    """Runs in flight at once."""

    @model_validator(mode="before")
    @classmethod
    def _application_may_have_no_seats(cls, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("protocol"), dict) and "graph" in value["protocol"]:
            return {"pool": {}, **value}
        return value

    @model_validator(mode="after")
    def _protocol_has_seats(self) -> Config:
        if not self.pool and not self.protocol.is_graph:
            raise ValueError("pool: Dictionary should have at least 1 item after validation, not 0")
        return self
