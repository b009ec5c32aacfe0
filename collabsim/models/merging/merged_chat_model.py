"""A merged model as a chat model.

In: member models, a base model, a `MergeRecipe`. Out: a model whose identity follows from these, so that a finished sweep
makes no merge and starts no engine. Local models are merged weight by weight and run on the base's engine settings, one
merge in memory at a time. Simulated ones, which stand in for them where protocols are tried, are merged skill by skill.
Left out on purpose: who is merged when (protocols), and the arithmetic (`tensors.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from statistics import fmean
from typing import Any

from collabsim.episode import Reply
from collabsim.errors import ProtocolError
from collabsim.locks import SharedLock
from collabsim.models.engines.engine import Engine
from collabsim.models.engines.shared_engines import engine_runs, retire_engine
from collabsim.models.local.local_model import ENGINE_SETTINGS, LocalModel
from collabsim.models.merging.merge_recipe import MergeRecipe
from collabsim.models.merging.merged_folder import merge, planned_merge
from collabsim.models.simulation.simulated import SimulatedModel
from collabsim.models.weights import ModelFolder
from collabsim.request import Request

_ROOM = SharedLock()
_resident: list[str] = []
"""Key of the merged model whose engine runs, if any."""
_loading = threading.Lock()  # several requests of one merge may come at once


class MergedModel(LocalModel):
    """The merge of `members` and `base`; made, and its engine started, by the first request that needs it."""

    members: tuple[LocalModel, ...]
    base: LocalModel
    recipe: MergeRecipe

    @cached_property
    def folder(self) -> ModelFolder:
        """Where the merge is or will be."""
        return planned_merge([member.folder for member in self.members], self.base.folder, self.recipe)

    async def areply(self, request: Request) -> Reply:
        """One reply; waits while another merge is in use. Raises as `LocalModel.areply`, and as `merged_folder.merge`."""
        async with _ROOM.hold(self.engine_key):
            return await super().areply(request)

    def running_engine(self) -> Engine:
        """The engine of this merge; the one of the merge before is closed first."""
        key = self.engine_key
        with _loading:
            if not engine_runs(key):
                while _resident:
                    retire_engine(_resident.pop())
                merge([member.folder for member in self.members], self.base.folder, self.recipe)
                _resident.append(key)
            return super().running_engine()


def merged_model(members: Sequence[Any], base: Any, recipe: MergeRecipe) -> Any:
    """The merge of these chat models. Raises `ProtocolError` when they are not all local, or all simulated."""
    if check_kinds([*members, base]):
        settings = {name: getattr(base, name) for name in (*ENGINE_SETTINGS, "engine", "dtype", "chat_format")}
        return MergedModel(spec="a merge", members=tuple(members), base=base, recipe=recipe, **settings)
    return _merged_skills(members, base, recipe)


def check_kinds(models: Sequence[Any]) -> bool:
    """Whether these models are merged weight by weight; else skill by skill.

    Raises `ProtocolError` when they are not all local, or all simulated.
    """
    # Exactly: a policy in training is a local model too, but its weights are not those of its folder.
    if all(type(model) is LocalModel for model in models):
        return True
    if all(isinstance(model, SimulatedModel) for model in models):
        return False
    kinds = sorted({type(model).__name__ for model in models})
    raise ProtocolError(
        f"expected models whose weights can be merged (local ones of one architecture), got {', '.join(kinds)}; change the "
        "pool or the base"
    )


def _merged_skills(members: Sequence[SimulatedModel], base: SimulatedModel, recipe: MergeRecipe) -> SimulatedModel:
    """A simulated model has one number a topic, on which trimming and thinning have nothing to act: deltas are averaged.

    `task_arithmetic` adds them. Sums run over sorted numbers, so that the order of members plays no part.
    """
    models = [*members, base]
    topics = {topic for model in models if isinstance(model.skill, dict) for topic in model.skill} | {"default"}
    merged = {}
    for topic in sorted(topics):
        origin = base.skill_on(topic)
        deltas = sorted(member.skill_on(topic) - origin for member in members)
        if recipe.method == "mean":
            merged[topic] = fmean(sorted(member.skill_on(topic) for member in members))
        else:
            added = sum(deltas) if recipe.method == "task_arithmetic" else fmean(deltas)
            merged[topic] = origin + recipe.scale * added
    model = SimulatedModel(
        name=f"merge by {recipe.method}",
        skill=merged,
        conformity=fmean(sorted(member.conformity for member in members)),
        no_answer_rate=fmean(sorted(member.no_answer_rate for member in members)),
        verbosity=base.verbosity,
        distractors=base.distractors,
    )
    model._key = base._key  # it knows the answers that the base has studied
    return model
