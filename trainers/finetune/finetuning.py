"""`multiagent_finetuning`: a recipe that makes a pool of a pool. Members debate and learn from their consensus.

In: a pool, items, settings. Out: a pool whose local members are new model folders, and a folder with every debate, what
each member learnt, and how it went. An iteration is: the pool debates each item (protocol `debate`); the majority of the
last answers is the consensus, whatever the gold says; each member is tuned, by maximum likelihood, on its own replies that
agree with it, opening answers and revisions; the next iteration debates with the new members. (Subramaniam et al. 2025,
arXiv 2501.05707; there a member is a generator and a critic of its own, here one model that does both.)

Stopped, it goes on at the debate or member where it was. Members without weights at hand (servers, simulated ones) debate
and stay as they are. Left out on purpose: golds, and any choice between iterations; dev is only evaluated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from collabsim.arguments import Count, checked, same_arguments
from collabsim.context import Limits
from collabsim.errors import ConfigError
from collabsim.item import Item
from collabsim.models import LocalModel
from collabsim.paths import user_path
from collabsim.pool import Pool, as_pool
from collabsim.run_folder import RunFolder
from collabsim.store import GenerationStore
from collabsim.system.system import System

from ..keywords import FinetuneSettings
from ..metrics import TrainProgress
from ..settings import one_of
from .debate_tuning import DebateTuning
from .finetuning_settings import FinetuneConfig, parse_finetune

if TYPE_CHECKING:
    from collabsim.pool import Members


@dataclass(frozen=True)
class FinetuneResult:
    """The result of a fine-tuning."""

    pool: Pool
    """The same seats; those that were tuned have their new weights."""
    values: dict[str, Any]
    """The content of `result.json`."""
    out: Path
    """The folder that holds the new models."""


@checked(
    items="give the items to debate, such as load_task(...).items",
    config="give FinetuneConfig(...), or the same settings as keywords",
    out="name the folder of the models",
)
def multiagent_finetuning(
    pool: Members,
    items: Sequence[Item],
    config: FinetuneConfig | None = None,
    *,
    out: Path | str,
    dev: Sequence[Item] = (),
    store: GenerationStore | None = None,
    limits: Limits | None = None,
    identity: Mapping[str, Any] | None = None,
    concurrency: Count = 100,
    progress: TrainProgress | None = None,
    **settings: Unpack[FinetuneSettings],
) -> FinetuneResult:
    """Let `pool` debate `items`, and tune each local member on its own replies that agree with the consensus.

    `config`, or the same settings as keywords (`iterations=2, lr=1e-4, ...`). `out`: the folder of the models; the same
    call resumes in it. `dev`: items whose mean outcome is noted after each iteration. `store`: of the debates' generations;
    None keeps them in memory. Works in scripts and notebooks.

    Raises `ConfigError` for settings or members that cannot be meant, `MissingOutcomesError` when a call of a debate failed
    (the same call tries again), `TrainingError` when no debate leaves anything to learn.
    """
    config = one_of(config, settings) or parse_finetune(settings)
    members = members_of(pool := as_pool(pool), config)
    system = System(
        "debate",
        pool,
        options=config.debate,
        store=store or GenerationStore(None),
        limits=limits or Limits(),
    )
    system.study([*items, *dev])
    fields = {"finetune": config.model_dump(mode="json"), "system": system.identity}
    fields |= {"items": sorted(item.id for item in items), "dev": sorted(item.id for item in dev)}
    folder = RunFolder(out, {**(identity or {}), **fields})
    folder.open()
    tuning = DebateTuning(system, items, dev, config, members, folder, concurrency, progress or TrainProgress())
    values = tuning.run()
    return FinetuneResult(tuning.system.pool, values, user_path(out, "out"))


@same_arguments(multiagent_finetuning)
async def amultiagent_finetuning(*given: Any, **settings: Any) -> FinetuneResult:
    """`multiagent_finetuning` for async code; the same arguments."""
    return await asyncio.to_thread(multiagent_finetuning, *given, **settings)


def members_of(pool: Pool, config: FinetuneConfig) -> tuple[str, ...]:
    """The seats that learn. Raises `ConfigError` for a pool that cannot debate, and for seats without local weights."""
    if len(pool) < 2:
        raise ConfigError(f"finetune: expected a pool of two or more seats, got {list(pool)}; nobody to agree with")
    local = tuple(name for name, seat in pool.items() if isinstance(seat.model, LocalModel) and seat.model.identity)
    for name in config.members or ():
        pool.check(name)
        if name not in local:
            raise ConfigError(
                f"finetune.members: {name!r} is a {type(pool[name].model).__name__}; expected a local model (hub id, folder, "
                ".gguf, package://...), whose weights can be tuned; leave it out, and it debates as it is"
            )
    members = local if config.members is None else tuple(name for name in pool if name in config.members)
    if not members:
        raise ConfigError(
            "finetune: no member has local weights (hub id, folder, .gguf, package://...); put one into the pool"
        )
    return members
