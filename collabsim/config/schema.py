"""The schema of a config file. Every key a user may write, its meaning and its default; unknown keys are refused.

The page of config keys is made from the descriptions here. Left out on purpose: the options of models, protocols and
data sets, which are checked by their owners, and the sections that commands of installed packages read; see
`sections.py`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidatorFunctionWrapHandler, field_validator, model_validator

from collabsim.config.sections import installed_sections
from collabsim.errors import ConfigError
from collabsim.request import Sampling

PLACEMENT = ("store", "out", "concurrency", "executor")
"""Keys that say where and how a sweep runs, not what it measures: no part of a run's identity."""

GRAPH = "graph:"
"""How the name of a protocol begins that is an existing application."""


class Section(BaseModel):
    """A strict, frozen part of the config."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        arbitrary_types_allowed=True,
        use_attribute_docstrings=True,
        allow_inf_nan=False,  # neither has a place in a run's identity
    )
    short_form: ClassVar[str | None] = None
    """The key that a text in the place of the section stands for; None: the section has to be written out."""

    @model_validator(mode="before")
    @classmethod
    def _written_out(cls, value: Any) -> Any:
        return {cls.short_form: value} if cls.short_form and isinstance(value, str) else value


class SeatConfig(Section):
    """One member of the pool, or one helper; a text alone is its `model`."""

    short_form = "model"

    model: str
    """The model: a folder, a `.gguf` file, a hub id, `package://...`, `simulated:`, `openai:NAME`,
    `python:module:attribute`."""
    engine: str = "auto"
    """What runs a local model: `vllm`, `transformers`, or `auto`, the fastest of them that works on this machine."""
    base_url: str | None = None
    """Address of the server of an `openai:` model, such as `http://localhost:8000/v1`. null: api.openai.com."""
    revision: str | None = None
    """Your word for the version of the model's weights: a hub model's branch or commit; a server's weights, which
    cannot be seen from here. Another word means that nothing generated before is reused. null: no version is named."""
    options: dict[str, Any] = {}
    """Options of the model, checked by its kind: `dtype` or `chat_format` of a local one, `skill` of a simulated one,
    `timeout` (seconds) of a server. Empty: each at its default."""
    sampling: Sampling = Sampling()
    """How its replies are drawn. Always sent in full, so that no engine's or server's own default is in force."""
    system: str | None = None
    """System message before everything that the seat is asked. null: none."""
    examples: tuple[tuple[str, str], ...] = ()
    """Few-shot pairs before every question: `[question, answer]` or `{question: ..., answer: ...}`. Empty: none."""
    description: str = ""
    """What a router is told about this seat. Empty: only its name."""

    @field_validator("sampling", mode="wrap")
    @classmethod
    def _in_its_place(cls, value: Any, read: ValidatorFunctionWrapHandler) -> Any:
        try:
            return read(value)
        except ConfigError as error:  # of `Sampling` itself, which does not know the key that it stands at
            raise ValueError(str(error)) from None

    @field_validator("examples", mode="before")
    @classmethod
    def _pairs(cls, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return value
        return tuple(
            (entry.get("question"), entry.get("answer")) if isinstance(entry, dict) else entry for entry in value
        )


class ProtocolConfig(Section):
    """A protocol by name (a text alone is its `name`); every other key is an option of that protocol.

    `graph: "package.module:app"` or `graph: "file.py:app"` in the place of a name is an existing LangGraph application;
    its other keys are those of `ApplicationConfig`.
    """

    model_config = ConfigDict(extra="allow")
    short_form = "name"

    name: str
    """A protocol of `collabsim protocols`, or your own as `package.module:function`."""
    roles: dict[str, str | list[str]] = {}
    """Role to the helper or seat that holds it, or to several seats by preference. Empty: each role as the protocol
    says."""
    order: list[str] | None = None
    """Fixed order in which the seats speak, all of them once. null: every item has an order of its own."""

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
    """Nodes and seats that a coalition switches. null: every node."""
    output: str | None = None
    """Function from the final state to the answer. null: the text of the last AI message."""
    input: str | None = None
    """Function from the item's view to the first state. null: its messages."""
    absent: dict[str, Any] = {}
    """What an absent player leaves behind. Node to `skip`, `pass`, `goto:NODE`, an update of the state, or a function
    in its place; seat to a text in its place. Empty: nodes are skipped, tools answer that they are not available."""
    label: str | None = None
    """What reports call the application. null: its file or module and name."""
    revision: str = ""
    """Your word for the version of its code and prompts; another word makes another run. Empty: no version is named."""
    recursion_limit: int | None = Field(default=None, gt=0)
    """Steps of one run of the graph at most. null: the application's own limit."""
    on_limit: Literal["no_answer", "fail"] = "no_answer"
    """What a run is that meets `recursion_limit`: a run without an answer, or a failed one."""
    memory: bool = False
    """Whether the application's own checkpointer and store are used, with a thread for each run."""


class DevConfig(Section):
    """Items for fitting and choosing, disjoint from the evaluated ones by question."""

    limit: int = Field(gt=0)
    """Number of items."""
    seed: int = 0
    """Decides which items are taken."""


class TaskConfig(Section):
    """The items that a system is run on; a text alone is the `source`."""

    short_form = "source"

    source: str
    """A known data set (`gsm8k`; see `collabsim tasks`), `jsonl:PATH`, `reasoning_gym:NAME`, `moco:NAME`, `hub:ID`."""
    options: dict[str, Any] = {}
    """Options of the source, such as a generator's `min_terms`. Empty: each at its default."""
    split: str = "test"
    """The part of the source that the items come from; a source without parts is all `test`."""
    limit: int | None = None
    """Number of items. null: all of them, or 100 of a generator."""
    seed: int = 0
    """Decides which items are taken, and what a generator makes."""
    filter: dict[str, Any] | None = None
    """Field to the value, or the list of values, that an item must have. null: every item is taken."""
    dev: DevConfig | None = None
    """Items for fitting and choosing. null: none, so protocols that are fitted cannot be run."""
    floor: Literal["zero", "chance"] = "zero"
    """What a run is worth in which nobody is present, v(empty): 0, or the score of a blind guess."""
    prompt: str | None = None
    """Template with {question} and {choices}, in place of the task's own prompt. null: the task's own."""
    fields: dict[str, str] | None = None
    """Which columns of the data hold question, answer and choices: `{question: text}`. null: those with the usual
    names."""
    kind: str | None = None
    """Kind of the answers: number, expression, exact, choice, text or code. null: as the source says, or read off its
    golds."""
    shuffle_options: bool | None = None
    """Whether each item's options come in an order of its own. null: only where a set has the right ones in a fixed
    place."""
    self_test: Literal["sample", "all", "none"] = "sample"
    """How many reference solutions are run at load, where answers are programs: some, all, or none."""


class SweepConfig(Section):
    """What is evaluated and how it is summed up."""

    method: str = "auto"
    """Which coalitions are run: `exact` (all), `loo`, `permutation`, `shapiq:NAME`; `auto` is exact up to 6 players and
    permutation above."""
    seed: int = 0
    """Seed of every run, and of the coalitions that are drawn."""
    players: Literal["seats", "models"] = "seats"
    """What a coalition switches: each seat, or each model with all its seats."""
    budget: int | None = Field(default=None, gt=0)
    """Coalitions for each item, of `shapiq:` methods. null: four per player."""
    alone: Literal["answers", "floor"] = "answers"
    """What a seat is worth that is alone: what it answers by itself, or v(empty)."""
    absent: str = "remove"
    """What takes an absent seat's place: nothing (`remove`), or a helper (`replace:HELPER`)."""
    on_missing: Literal["refuse", "drop_items"] = "refuse"
    """What failed runs mean for the values: none are given, or the items of these runs are left out."""
    on_overflow: Literal["fail", "no_answer"] = "fail"
    """What a prompt that does not fit a model's window makes of its run: a failed one, or one without that answer."""


class Config(Section):
    """A whole config file; keys that are not here are sections that commands of installed packages read."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, dict[str, Any] | None]

    pool: dict[str, SeatConfig]
    """The members, by the name of their seat. May be empty only where the protocol is an application."""
    helpers: dict[str, SeatConfig] = {}
    """Models outside the game, such as a judge: always present and never credited. Empty: none."""
    protocol: ProtocolConfig
    """How the members work together."""
    task: TaskConfig
    """The items, and how their answers are scored."""
    sweep: SweepConfig = SweepConfig()
    """Which coalitions are run, and how they are summed up."""
    store: str | None = None
    """File of the generation store. null: `$COLLABSIM_STORE`, else a file in the user's cache folder."""
    out: str | None = None
    """Run folder. null: `runs/<config stem>-<8 hex of the config>`."""
    concurrency: int = Field(default=100, gt=0)
    """Runs in flight at once."""

    @property
    def sections(self) -> dict[str, dict[str, Any] | None]:
        """The sections of commands, as they are written."""
        return dict(self.model_extra or {})

    def section(self, name: str) -> dict[str, Any] | None:
        """The section of a command, to be checked by it; None when there is none."""
        return self.sections.get(name)

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

    @model_validator(mode="after")
    def _sections_are_read_by_somebody(self) -> Config:
        if unknown := self.sections.keys() - installed_sections():
            raise ValueError(f"unknown keys {sorted(unknown)}; no installed command reads them")
        return self
