"""The `finetune:` section of a config: the options of `multiagent_finetuning`, and the same from Python.

In: plain data. Out: a checked `FinetuneConfig`. Left out on purpose: the pool and the task, which are the config's other
sections.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, field_validator

from collabsim.config.read import parse_section
from collabsim.recipes import Recipe

from ..settings import ItemsConfig, LearnerConfig, LoraConfig, TrainConfig


class FinetuneConfig(LearnerConfig):
    """How often members debate, what they keep of it, and how they learn from it."""

    section = "finetune"

    members: tuple[str, ...] | None = None
    """The seats that learn. null: every seat with a local model. The others debate and stay as they are."""
    iterations: int = Field(default=1, gt=0)
    """Rounds of debating all items and then tuning; each debates with the members that the last one made."""
    debate: dict[str, Any] = Field(default_factory=dict)
    """Options of the protocol `debate`, such as `{rounds: 2}`; it always ends in a vote."""
    items: ItemsConfig = ItemsConfig()
    """The items that are debated; their golds are not read."""
    support: float = Field(default=0.5, ge=0, lt=1)
    """A consensus is the one most frequent last answer, given by more than this share of the seats."""
    corrected: float = Field(default=0.5, ge=0, le=1)
    """Weight of revisions that came round to the consensus, against those that had it before."""
    epochs: int = Field(default=1, gt=0)
    """Passes through what a member keeps, in each iteration."""
    rows_per_step: int = Field(default=16, gt=0)
    """Replies in one update."""
    seed: int = 0
    """Seed of the debates, of the order of replies and of the tuning."""

    lr: float = Field(default=1e-4, gt=0)
    """Learning rate of AdamW, at its highest; the default suits adapters."""
    lora: LoraConfig | None = LoraConfig()
    """Adapters that learn in place of the weights. null: all weights learn; a learning rate of 1e-5 is then more like it."""

    @field_validator("debate")
    @classmethod
    def _ends_in_a_vote(cls, value: dict[str, Any]) -> dict[str, Any]:
        if value.get("final", "vote") != "vote":
            raise ValueError("the consensus is the vote of the last answers; leave `final` out")
        return value

    def training(self, seat: str, steps: int) -> TrainConfig:
        """The same as settings of a training of one seat, as the optimiser takes them."""
        shared = {name: getattr(self, name) for name in LearnerConfig.model_fields}
        return TrainConfig(seat=seat, objective="rft", steps=steps, seed=self.seed, **shared)


RECIPE = Recipe(
    name="multiagent_finetuning",
    command="finetune",
    settings=FinetuneConfig,
    doc="Members debate, and each is tuned on its own replies that agree with the majority of the last answers; repeat.",
    absent="trained once with the whole pool; a sweep of the new pool toggles its members at test",
    players=(2, None),
    needs=frozenset({"weights"}),
)


def parse_finetune(data: Mapping[str, Any] | None) -> FinetuneConfig:
    """The settings in the `finetune:` section. Raises `ConfigError` that names the key, what was expected and what came."""
    return parse_section(FinetuneConfig, data or {}, "finetune")
