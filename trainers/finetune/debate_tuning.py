"""The loop of `multiagent_finetuning`: debates, consensus and tuning in turn, each step kept when it is done.

In: a debate over a pool, items, settings, an open folder. Out: the content of `result.json`, and the system with the new
members. A step that is in the folder is read back and not done again. Left out on purpose: the checks before it;
see `finetuning.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import TYPE_CHECKING, Any

from collabsim.errors import TrainingError
from collabsim.loop import run_sync
from collabsim.models import LocalModel
from collabsim.models.engines import retire_engine
from collabsim.run_folder import RunFolder, read_json, write_json
from collabsim.seeds import derive_seed, digest
from collabsim.system.system import System

from ..evaluation import score
from ..metrics import TrainProgress
from ..partner_noise import evaluation_seed
from ..training import RESULT_FILE
from .debates import Debate, Lesson, consensus, hold_debates, lessons, read_debates, write_debates
from .finetuning_settings import RECIPE, FinetuneConfig

if TYPE_CHECKING:
    from collabsim.item import Item

DEBATES_FILE = "debates.jsonl"


@dataclass
class DebateTuning:
    """One fine-tuning, from its first or its latest step to its result."""

    system: System
    """The debate, with the members as they are now."""
    items: Sequence[Item]
    dev: Sequence[Item]
    config: FinetuneConfig
    members: tuple[str, ...]
    folder: RunFolder
    concurrency: int
    progress: TrainProgress
    records: list[dict[str, Any]] = field(default_factory=list)
    """One for each iteration that is done."""

    def run(self) -> dict[str, Any]:
        """All iterations, as far as they are not done; `result.json`."""
        before = self.on_dev(0)
        for iteration in range(1, self.config.iterations + 1):
            self.iterate(iteration)
        values = {
            "recipe": RECIPE.name,
            "members": list(self.members),
            "unchanged": [name for name in self.system.pool if name not in self.members],
            "iterations": self.records,
            "dev": None if before is None else [before, *(record["dev"] for record in self.records)],
            "pool": {name: self.local(name).spec for name in self.members},
            "identities": {name: seat.identity for name, seat in self.system.pool.items()},
            "definition": f"{RECIPE.doc} No gold is read. {RECIPE.absent.capitalize()}.",
        }
        write_json(self.folder.file(RESULT_FILE), values)
        return values

    def iterate(self, iteration: int) -> None:
        """Debate, keep what the consensus supports, tune every member on its part; then the pool is the new one."""
        debates = self.debates(iteration)
        lessons, agreed = self.lessons(debates)
        if not any(lessons.values()):
            raise TrainingError(
                f"iteration {iteration}: {len(agreed)} of {len(debates)} debates reached a consensus, and no member has a "
                "whole reply that agrees with one; lower finetune.support, raise max_tokens, or take easier items"
            )
        members = {name: self.tune(iteration, name, lessons[name]) for name in self.members}
        pool = self.system.pool
        for name in self.members:
            if members[name]["folder"] is not None:
                pool = pool.replace(name, tuned(self.local(name), self.folder.path / members[name]["folder"]))
        self.system = replace(self.system, pool=pool)
        right = [debate.outcome for debate in debates if debate.item in agreed]
        self.records.append(
            {
                "iteration": iteration,
                "debates": len(debates),
                "consensus": len(agreed),
                "consensus_right": fmean(right) if right else None,
                "outcome": fmean(debate.outcome for debate in debates),
                "members": members,
                "cost": self.cost(debates, members),
                "dev": self.on_dev(iteration),
            }
        )

    def place(self, iteration: int) -> Path:
        """The folder of an iteration."""
        return self.folder.file(f"iteration-{iteration}")

    def local(self, name: str) -> LocalModel:
        """The model of a member, as it is now."""
        model = self.system.pool[name].model
        assert isinstance(model, LocalModel)  # `members_of` checks this
        return model

    def debates(self, iteration: int) -> list[Debate]:
        """The debates of an iteration: from its file, else held now."""
        file = self.place(iteration) / DEBATES_FILE
        held = read_debates(file)
        if held is None:
            self.progress.note(f"iteration {iteration}: {len(self.items)} debates among {', '.join(self.system.pool)}")
            seed = derive_seed("multiagent finetuning", self.config.seed, iteration)
            held = run_sync(hold_debates(self.system, self.items, seed, concurrency=self.concurrency))
            write_debates(file, held)
        return held

    def lessons(self, debates: Sequence[Debate]) -> tuple[dict[str, list[Lesson]], set[str]]:
        """The lessons of each member, and the items on which there was a consensus."""
        items = {item.id: item for item in self.items}
        by_member: dict[str, list[Lesson]] = {name: [] for name in self.members}
        agreed = set()
        for debate in debates:
            item = items[debate.item]
            answer = consensus(debate, item, len(self.system.pool), self.config.support)
            if answer is not None:
                agreed.add(debate.item)
                for name in self.members:
                    by_member[name] += lessons(debate, item, name, answer, self.config.corrected)
        return by_member, agreed

    def tune(self, iteration: int, name: str, lessons: Sequence[Lesson]) -> dict[str, Any]:
        """Tune one member; its record, which is read back where the member is done already."""
        from .imitation import imitate

        file = self.place(iteration) / "records" / f"{name}.json"
        record: dict[str, Any] | None = read_json(file)
        if record is not None:
            return record
        started, model = perf_counter(), self.local(name)
        kinds = {kind: sum(lesson.kind == kind for lesson in lessons) for kind in ("answer", "corrected", "kept")}
        record = {
            "from": model.identity,
            "replies": kinds,
            "tokens": sum(len(lesson.example.row) for lesson in lessons),
        }
        record["learnt"] = digest(sorted([*one.row.tokens, one.advantage] for _, one in lessons))
        folder = f"iteration-{iteration}/members/{name}" if lessons else None
        if folder:
            self.make_room()
            self.progress.note(f"iteration {iteration}: {name} learns from {len(lessons)} of its replies")
            key = ("multiagent finetuning", self.config.seed, iteration, name)
            done = imitate(model, [one for _, one in lessons], self.config, key, self.folder.path / folder)
            record |= {"steps": len(done), "nll": done}
        record |= {"folder": folder, "seconds": perf_counter() - started}
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json(file, record)
        return record

    def cost(self, debates: Sequence[Debate], members: Mapping[str, Any]) -> dict[str, int]:
        """Costs of an iteration: calls and tokens of its debates, and tokens that were trained on, each pass counted."""
        usage = [turn.reply.usage for debate in debates for turn in debate.said]
        return {
            "calls": len(usage),
            "prompt_tokens": sum(one.prompt_tokens for one in usage),
            "completion_tokens": sum(one.completion_tokens for one in usage),
            "trained_tokens": self.config.epochs * sum(record["tokens"] for record in members.values()),
        }

    def make_room(self) -> None:
        """Close the engines of the pool: the next debate starts those it needs."""
        for seat in self.system.pool.values():
            if isinstance(seat.model, LocalModel):
                retire_engine(seat.model.engine_key)

    def on_dev(self, iteration: int) -> float | None:
        """The mean outcome of the debate on the dev items, kept in the folder of the iteration; None without dev items."""
        if not self.dev:
            return None
        file = self.place(iteration) / "dev.json"
        outcomes: list[float] | None = read_json(file)
        if outcomes is None:
            seed = evaluation_seed(self.config.seed)
            outcomes = list(run_sync(score(self.system, self.dev, seed, concurrency=self.concurrency)))
            file.parent.mkdir(parents=True, exist_ok=True)
            write_json(file, outcomes)
        return fmean(outcomes)


def tuned(model: LocalModel, folder: Path) -> LocalModel:
    """`model` with its weights in `folder`; how it is run stays the same."""
    settings = {name: getattr(model, name) for name in model.model_fields_set - {"revision_of_weights"}}
    return LocalModel(**{**settings, "spec": str(folder.resolve())})
