"""Checkpoints of a training: everything that the next step depends on, whole or not at all.

In: learner, optimiser, scheduler, and the position of the training. Out: the same, bit for bit, in another process. A
checkpoint is a folder that appears under its name when it is complete; an index, replaced in one step, names the last
and the best one; only then are older ones deleted. So a process may be killed at any byte. Imports torch. Left out on
purpose: engines, which get their weights by a push after a resume, and the policy's folder (`Learner.save`).
"""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from collabsim.errors import DataError

from .policy.learner import Learner
from .policy.saving import WRITE_ERRORS, appearing, recover

INDEX = "index.json"
STATE, WEIGHTS, TRAINING = "state.json", "weights.safetensors", "training.pt"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One checkpoint on disk."""

    path: Path
    step: int
    """Updates done."""
    revision: str
    """Version of the weights; the first push after a resume has the same one."""
    score: float | None
    """On dev, where it was evaluated at this step."""
    position: Mapping[str, Any] = field(default_factory=dict)
    """Position of the training in its items, and other state of the loop: JSON."""

    def restore(self, learner: Learner, optimizer: Any, scheduler: Any = None) -> None:
        """Put weights, optimiser, scheduler and the generators of torch, Python and numpy back to where they were.

        Push the weights before the next rollout: until then the engine has older ones. Raises `DataError` when the
        files are damaged or belong to another learner or optimiser.
        """
        import torch
        from safetensors.torch import load_file

        try:
            weights = load_file(self.path / WEIGHTS)
            training = torch.load(self.path / TRAINING, map_location="cpu", weights_only=True)
        except (OSError, ValueError, RuntimeError, EOFError, pickle.UnpicklingError, KeyError) as error:
            reason = str(error).strip().splitlines()
            raise DataError(
                f"checkpoint {self.path} is damaged ({reason[0] if reason else type(error).__name__}); resume from another "
                "one, or start anew"
            ) from error
        if (scheduler is None) != (training["scheduler"] is None):
            raise DataError(
                f"checkpoint {self.path} was written {'with' if scheduler is None else 'without'} a scheduler"
            )
        learner.load_state(weights)
        try:
            optimizer.load_state_dict(training["optimizer"])
        except (ValueError, KeyError) as error:
            raise DataError(
                f"checkpoint {self.path} belongs to another optimiser ({error}); use the config it had"
            ) from error
        if scheduler is not None:
            scheduler.load_state_dict(training["scheduler"])
        _restore_generators(training["generators"])


class Checkpoints:
    """The checkpoints in a folder: the last and the best one are kept."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)

    @property
    def last(self) -> Checkpoint | None:
        """The newest. Raises `DataError` when it is damaged."""
        return self._listed("last")

    @property
    def best(self) -> Checkpoint | None:
        """The one with the highest score, the earliest of equals. Raises `DataError` when it is damaged."""
        return self._listed("best")

    def save(
        self,
        learner: Learner,
        optimizer: Any,
        scheduler: Any = None,
        *,
        step: int,
        revision: str,
        position: Mapping[str, Any] | None = None,
        score: float | None = None,
    ) -> Checkpoint:
        """Write a checkpoint after `step` updates; `score` (higher is better) makes it a candidate for the best one.

        Raises `DataError` when the disk refuses; what was there stays.
        """
        import torch
        from safetensors.torch import save_file

        self._clear()
        name, best = f"step-{step:06d}", self.best
        if best is not None and best.step == step and score is None:
            score = best.score  # the same step once more, after a resume: it stays the best
        written = Checkpoint(self.folder / name, step, revision, score, dict(position or {}))
        training = {
            "optimizer": optimizer.state_dict(),
            "scheduler": None if scheduler is None else scheduler.state_dict(),
            "generators": _generators(),
        }
        try:
            with appearing(written.path) as unfinished:
                weights = {name: tensor.cpu().contiguous() for name, tensor in learner.state().items()}
                save_file(weights, unfinished / WEIGHTS)
                torch.save(training, unfinished / TRAINING)
                sizes = {file: (unfinished / file).stat().st_size for file in (WEIGHTS, TRAINING)}
                state = {key: value for key, value in asdict(written).items() if key != "path"}
                (unfinished / STATE).write_text(
                    json.dumps({**state, "sizes": sizes}, allow_nan=False), encoding="utf-8"
                )
            if score is not None and (best is None or best.score is None or best.step == step or score > best.score):
                best = written
            self._point({"last": name, "best": best.path.name if best else None})
        except WRITE_ERRORS as error:
            raise DataError(
                f"cannot write checkpoint {written.path} ({error}); free space there, then resume"
            ) from error
        return written

    def _listed(self, which: str) -> Checkpoint | None:
        name = self._index().get(which)
        return None if name is None else _read(self.folder / name)

    def _index(self) -> dict[str, Any]:
        file = self.folder / INDEX
        try:
            index: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise DataError(
                f"{file} cannot be read ({error}); name a step folder in it by hand, or start anew"
            ) from error
        return index

    def _clear(self) -> None:
        """Put back what a killed process had set aside, delete what it had not finished."""
        for name in filter(None, self._index().values()):
            recover(self.folder / name)
        for left in self.folder.glob(".step-*"):
            shutil.rmtree(left, ignore_errors=True)

    def _point(self, index: Mapping[str, str | None]) -> None:
        """Make these the last and the best one, then delete all others."""
        unfinished = self.folder / f".{INDEX}.unfinished"
        with unfinished.open("w", encoding="utf-8") as file:
            json.dump(index, file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(self.folder / INDEX)
        for path in self.folder.glob("step-*"):
            if path.name not in index.values():
                shutil.rmtree(path, ignore_errors=True)


def _read(path: Path) -> Checkpoint:
    recover(path)
    try:
        state = json.loads((path / STATE).read_text(encoding="utf-8"))
        for file, size in state.pop("sizes").items():
            if (actual := (path / file).stat().st_size) != size:
                raise DataError(f"checkpoint {path} is damaged: expected {size} bytes in {file}, got {actual}")
        return Checkpoint(path, **state)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"checkpoint {path} is damaged ({error}); resume from another one, or start anew") from error


def _generators() -> dict[str, Any]:
    """States of the global generators, as values that `torch.load` reads without running code."""
    import numpy
    import torch

    name, keys, *rest = numpy.random.get_state(legacy=True)
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        "python": random.getstate(),
        "numpy": [name, numpy.asarray(keys).tolist(), *rest],
    }


def _restore_generators(states: Mapping[str, Any]) -> None:
    import numpy
    import torch

    torch.set_rng_state(states["torch"])
    if len(states["cuda"]) == (torch.cuda.device_count() if torch.cuda.is_available() else 0):
        torch.cuda.set_rng_state_all(states["cuda"])
    random.setstate(states["python"])
    name, keys, *rest = states["numpy"]
    numpy.random.set_state((name, numpy.asarray(keys, dtype=numpy.uint32), *rest))
