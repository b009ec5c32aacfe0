"""The `train:` section of a config, and the same settings from Python.

In: plain data. Out: a checked `TrainConfig`. Everything that decides what is learned is here; where files go and how many
runs are in flight is not. Left out on purpose: the pool, protocol and task, which are the config's other sections.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from pydantic import Field, ValidationError, model_validator

from collabsim.config.problems import problems_of
from collabsim.config.read import parse_section
from collabsim.config.schema import Section
from collabsim.errors import ConfigError

from .losses import Loss, Norm, Unit, loss_named
from .objectives import CoalitionRule, Noise, Objective, parse_objective

if TYPE_CHECKING:
    from .policy.lora import LoraSettings

SUPERVISED = ("sft", "rft")
"""Objectives without a reward: golds, and the learner's own right answers."""


class ItemsConfig(Section):
    """The items to train on: disjoint by question from the task's items and its dev items."""

    limit: int = Field(default=200, gt=0)
    """Number of items at most."""
    seed: int = 0
    """Decides which items are taken."""
    split: str | None = None
    """The part of the source that they come from. null: its `train` split where it has one, else what the task and dev
    leave over."""


class LoraConfig(Section):
    """Low-rank adapters in place of full weights; see `lora.LoraSettings`."""

    rank: int = Field(default=16, gt=0)
    """Rank of each adapter: how many directions it may change."""
    alpha: int = Field(default=32, gt=0)
    """Scale of the adapters: what they add is multiplied by `alpha / rank`."""
    targets: tuple[str, ...] | str = "all-linear"
    """Names of the layers that get one, or `all-linear`."""
    seed: int = 0
    """Seed of the adapters' first weights."""

    def settings(self) -> LoraSettings:
        """As the learner takes it."""
        from .policy.lora import LoraSettings

        return LoraSettings(self.rank, self.alpha, self.targets, self.seed)


class EvalConfig(Section):
    """Evaluation on dev during training, and on the task's items before and after."""

    every: int = Field(default=10, ge=0)
    """Steps between two looks at dev; 0: only the last weights count and dev is never read."""
    values: Literal["auto", "exact", "permutation", "loo", "none"] = "auto"
    """How compositional strength is measured before and after; `none` measures the system and the learner alone."""
    test: bool = True
    """Whether the task's items are read at all; a study of learning rates should not."""


class LearnerConfig(Section):
    """How weights change, whatever they learn from: the optimiser and the model that holds them."""

    section: ClassVar[str]
    """Name of the section in a config."""

    if not TYPE_CHECKING:  # type checkers make one of the fields

        def __init__(self, /, **settings: Any) -> None:
            """Raises `ConfigError` that names the key, as `parse_section` does for the section of a file."""
            try:
                super().__init__(**settings)
            except ValidationError as error:
                problems = problems_of(error, settings, type(self), self.section)
                raise ConfigError("; ".join(problems)) from None

        __init__.__pydantic_base_init__ = True  # validation of a file's section goes past it, and knows its place

    lr: float = Field(default=1e-6, gt=0)
    """Learning rate of AdamW, at its highest."""
    warmup: int = Field(default=0, ge=0)
    """Steps over which the learning rate rises from zero."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """How the learning rate goes on after the warm-up: as it is, or down to zero at the last step."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Weight decay of AdamW."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Decay rates of AdamW's means of the gradient and of its square."""
    grad_clip: float | None = Field(default=1.0, gt=0)
    """Greatest norm of a step's gradient; a longer one is scaled down. null: no limit."""

    lora: LoraConfig | None = None
    """Adapters that learn in place of the weights. null: all weights learn."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Number format of the weights that learn; `auto`: float32, or under `lora` the checkpoint's own."""
    device: str = "auto"
    """Where the learner is; several with commas between them share its layers: `cuda:1,cuda:2`. `auto`: a GPU where there
    is one."""
    autocast: bool = False
    """Compute in bfloat16; refused on a CPU without instructions for it."""
    gradient_checkpointing: bool = False
    """Whether activations are computed again in the backward pass: less memory, more time."""
    micro_tokens: int = Field(default=8192, gt=0)
    """Tokens of one forward and backward pass, padding included."""


class TrainConfig(LearnerConfig):
    """What is learned, and how."""

    section = "train"

    seat: str
    """The seat, or helper, that learns."""
    objective: str | dict[str, float] = "system"
    """`system`, `individual`, `leave_one_out`, weights of these, `sft` (golds) or `rft` (own right answers)."""
    loss: str = "grpo"
    """`grpo`, `dr_grpo`, `rloo` or `reinforce`."""
    group: int = Field(default=8, ge=2)
    """Runs of one item whose rewards are compared."""
    items_per_step: int = Field(default=8, gt=0)
    """Items, and so groups of runs, in one step."""
    steps: int = Field(default=100, gt=0)
    """Steps at most; each makes new runs and updates the weights `epochs` times."""
    tokens: int | None = Field(default=None, gt=0)
    """Ends the training before `steps` when the learner has written (or, under `sft`, read) so many tokens: equal budgets.
    null: only `steps` counts."""
    items: ItemsConfig = ItemsConfig()
    """The items to train on."""
    seed: int = 0
    """Seed of the order of items and of every run."""

    partner_noise: Literal["auto", "crossed", "shared", "independent"] = "auto"
    """Which replies of the partners the runs of a group meet: every one of `partner_draws` (`crossed`), all the same
    (`shared`), or each its own (`independent`). `auto`: crossed where learner and partners never read each other (a
    vote), else shared."""
    partner_draws: int = Field(default=4, gt=0)
    """K: partner draws per visit of an item, when crossed."""
    coalition: CoalitionRule = "full"
    """Who is present beside the learner: everyone (`full`), or those before it in a random order (`shapley`: the reward is
    then its Shapley value)."""
    resample: int = Field(default=0, ge=0)
    """How often a group of equal rewards is drawn again; items that vary then weigh more."""

    norm: Norm = "constant"
    """What the loss of a run is divided by: a constant, or the run's own tokens (`run`; biased towards short replies)."""
    norm_tokens: int | None = Field(default=None, gt=0)
    """The constant that losses are divided by, per run. null: the seat's max_tokens."""
    clip: float | tuple[float, float] = 0.2
    """How far the probability ratio of new to old weights may go from 1 before it stops to count: both ways, or down and
    up."""
    ratio: Unit = "call"
    """Whether a ratio, and an importance weight, is that of a whole `call` or of each `token`."""
    cap: float | None = Field(default=2.0, gt=0)
    """Greatest importance weight between learner and engine; null: no weight."""
    kl: float = Field(default=0.0, ge=0)
    """Weight of the KL divergence from the first weights, which is added to the loss; 0: none."""
    epochs: int = Field(default=1, gt=0)
    """Updates per batch of rollouts."""

    eval: EvalConfig = EvalConfig()
    """When the system is measured, and how."""
    checkpoint_every: int = Field(default=1, gt=0)
    """Steps between checkpoints; a killed training loses at most so many."""

    @model_validator(mode="after")
    def _consistent(self) -> TrainConfig:
        if self.objective not in SUPERVISED:
            parse_objective(self.objective)
        self.policy_loss()
        if self.supervised and self.coalition != "full":
            raise ValueError(f"objective {self.objective} has no coalition; leave `coalition` out")
        if self.supervised and (self.kl or self.resample):
            raise ValueError(f"objective {self.objective} has no use for kl and resample; leave them out")
        return self

    @property
    def supervised(self) -> bool:
        """Whether the objective has no reward."""
        return self.objective in SUPERVISED

    def rollout_objective(self) -> Objective:
        """What runs are made for; own answers for `rft`."""
        return parse_objective("individual" if self.objective in SUPERVISED else self.objective)

    @property
    def objective_name(self) -> str:
        """For tables."""
        return str(self.objective) if self.objective in SUPERVISED else parse_objective(self.objective).name

    def policy_loss(self) -> Loss:
        """The loss with its settings."""
        low, high = self.clip if isinstance(self.clip, tuple) else (self.clip, self.clip)
        changes: dict[str, Any] = {"clip": (low, high), "unit": self.ratio, "cap": self.cap}
        return loss_named(self.loss, **changes, kl=self.kl, norm=self.norm)

    def noise(self, default: Noise) -> Noise:
        """The partner noise, `auto` resolved."""
        return default if self.partner_noise == "auto" else self.partner_noise


C = TypeVar("C")


def one_of(config: C | None, settings: Mapping[str, Any]) -> C | None:
    """`config` as it is. Raises `ConfigError` when the same settings come as keywords too, which would be ignored."""
    if config is not None and settings:
        raise ConfigError(
            f"expected `config` or its settings as keywords, got both ({', '.join(settings)}); leave one out"
        )
    return config


def parse_train(data: Mapping[str, Any] | None) -> TrainConfig:
    """The settings in the `train:` section. Raises `ConfigError` that names the key, what was expected and what came."""
    if data is None:
        raise ConfigError("expected a section `train:` with at least `seat:`, got none; name the seat that learns")
    return parse_section(TrainConfig, data, "train")
