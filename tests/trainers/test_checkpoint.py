"""Checkpoints: the same bits back, the last and the best, and nothing lost to a kill at any moment."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from collabsim.trainers.policy.token_row import TokenRow
from engines import requires
from limits import no_file_above
from tiny_policy import disturb
from tiny_vllm import vllm_folder

from collabsim.errors import DataError

pytestmark = requires("torch", "transformers")

ROWS = [TokenRow((1, 7, 9), (11, 12, 2)), TokenRow((1, 30), (40, 41))]
TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return vllm_folder(tmp_path_factory.mktemp("models") / "llama", tied=True)


def training(folder, *, lora=False):
    """A learner, an optimiser with momentum and a scheduler that bends the rate at every step."""
    import torch
    from collabsim.trainers.policy.learner import Learner
    from collabsim.trainers.policy.lora import LoraSettings

    learner = Learner.load(folder, lora=LoraSettings(rank=2, alpha=4) if lora else None)
    optimizer = torch.optim.AdamW(learner.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    return learner, optimizer, scheduler


def update(learner, optimizer, scheduler):
    """One step that uses every generator that a loop could use."""
    import torch

    weights = torch.rand(5) * random.random() * np.random.rand()
    loss = (torch.cat(learner.token_logprobs(ROWS)) * weights).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()


def checkpoints(path):
    from collabsim.trainers.checkpoint import Checkpoints

    return Checkpoints(path)


@pytest.mark.parametrize("lora", [False, pytest.param(True, marks=requires("peft"))])
def test_a_resumed_training_equals_the_uninterrupted_one_bit_for_bit(folder, tmp_path, lora):
    import torch

    learner, optimizer, scheduler = training(folder, lora=lora)
    update(learner, optimizer, scheduler)
    checkpoints(tmp_path).save(
        learner, optimizer, scheduler, step=1, revision="1", position={"order": [3, 1], "next": 1}
    )
    for _ in range(2):
        update(learner, optimizer, scheduler)
    expected = {name: tensor.clone() for name, tensor in learner.state().items()}

    random.seed(99)
    torch.manual_seed(99)
    learner, optimizer, scheduler = training(folder, lora=lora)
    found = checkpoints(tmp_path).last
    found.restore(learner, optimizer, scheduler)
    assert (found.step, found.revision, found.position) == (1, "1", {"order": [3, 1], "next": 1})
    for _ in range(2):
        update(learner, optimizer, scheduler)
    assert all(torch.equal(tensor, expected[name]) for name, tensor in learner.state().items())


def test_the_last_and_the_best_are_kept_and_no_others(folder, tmp_path):
    kept, learner_and_optimizer = checkpoints(tmp_path), training(folder)
    assert (kept.last, kept.best) == (None, None)
    for step, score in [(1, None), (2, 0.3), (3, 0.5), (4, 0.5), (5, None), (6, 0.4)]:
        kept.save(*learner_and_optimizer, step=step, revision=str(step), score=score)
    assert (kept.last.step, kept.best.step, kept.best.score) == (6, 3, 0.5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index.json", "step-000003", "step-000006"]


def test_a_negative_score_can_be_the_best(folder, tmp_path):
    kept, parts = checkpoints(tmp_path), training(folder)
    for step, score in [(1, -0.5), (2, -0.2), (3, -0.4)]:
        kept.save(*parts, step=step, revision="0", score=score)
    assert kept.best.step == 2


def test_the_best_step_written_again_stays_the_best(folder, tmp_path):
    kept, parts = checkpoints(tmp_path), training(folder)
    kept.save(*parts, step=3, revision="3", score=0.5)
    kept.save(*parts, step=3, revision="3")
    assert (kept.best.step, kept.best.score) == (3, 0.5)


def test_a_full_disk_is_said_and_the_last_checkpoint_stays(folder, tmp_path):
    kept, parts = checkpoints(tmp_path), training(folder)
    kept.save(*parts, step=1, revision="1")
    with no_file_above(20_000), pytest.raises(DataError, match="cannot write checkpoint"):
        kept.save(*parts, step=2, revision="2")
    kept.last.restore(*training(folder))
    assert kept.last.step == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index.json", "step-000001"]


@pytest.mark.parametrize("file", ["weights.safetensors", "training.pt", "state.json"])
def test_a_file_that_was_cut_off_is_a_damaged_checkpoint(folder, tmp_path, file):
    kept, parts = checkpoints(tmp_path), training(folder)
    path = kept.save(*parts, step=1, revision="1").path / file
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataError, match="damaged"):
        _ = kept.last


def test_a_file_with_other_bytes_is_a_damaged_checkpoint_and_runs_no_code(folder, tmp_path):
    kept, parts = checkpoints(tmp_path), training(folder)
    path = kept.save(*parts, step=1, revision="1").path / "training.pt"
    path.write_bytes(b"cos\nsystem\n(S'true'\ntR." + bytes(path.stat().st_size - 23))
    with pytest.raises(DataError, match="damaged"):
        kept.last.restore(*training(folder))


def test_a_checkpoint_with_a_scheduler_is_not_resumed_without(folder, tmp_path):
    kept, (learner, optimizer, scheduler) = checkpoints(tmp_path), training(folder)
    found = kept.save(learner, optimizer, scheduler, step=1, revision="1")
    with pytest.raises(DataError, match="scheduler"):
        found.restore(learner, optimizer)


def test_a_checkpoint_of_another_learner_is_refused(folder, tmp_path):
    pytest.importorskip("peft")
    found = checkpoints(tmp_path).save(*training(folder), step=1, revision="1")
    with pytest.raises(DataError, match="lora"):
        found.restore(*training(folder, lora=True))


def test_a_step_set_aside_while_it_was_written_again_is_found(folder, tmp_path):
    kept, parts = checkpoints(tmp_path), training(folder)
    path = kept.save(*parts, step=4, revision="4").path
    path.rename(tmp_path / ".step-000004.previous")  # what a kill between two renames leaves
    assert kept.last.step == 4
    kept.last.restore(*training(folder))


WRITER = """
import sys
sys.path[:0] = [{tests!r}, {here!r}]
from test_checkpoint import checkpoints, training, update
parts = training({folder!r})
for step in range({first}, 10_000):
    update(*parts)
    checkpoints({out!r}).save(*parts, step=step, revision=str(step), position={{"next": step}}, score=step % 7)
    print(step, flush=True)
"""


@pytest.mark.slow
def test_a_process_killed_while_it_writes_leaves_a_whole_checkpoint(folder, tmp_path):
    places = {
        "tests": str(TESTS),
        "here": str(Path(__file__).parent),
        "folder": str(folder),
        "out": str(tmp_path / "out"),
    }
    step = 0
    for pause in (0.004, 0.011):  # seconds into the writing of the next one
        program = WRITER.format(first=step + 1, **places)
        writer = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        said = [int(writer.stdout.readline()) for _ in range(5)]
        time.sleep(pause)
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        kept = checkpoints(tmp_path / "out")
        step = kept.last.step
        assert step >= said[-1], "a checkpoint that was reported is gone"
        for found in (kept.last, kept.best):
            found.restore(*training(folder))
            assert found.position == {"next": found.step}


def test_a_kill_at_every_stage_of_a_write_leaves_the_previous_or_the_new_one(folder, tmp_path, monkeypatch):
    """Every rename, replacement and deletion in turn is where the process ends; the next one finds a whole checkpoint."""
    from collabsim.trainers import checkpoint
    from collabsim.trainers.policy import saving

    class Killed(BaseException):
        pass

    learner, optimizer, scheduler = training(folder)
    for stage in range(1, 30):
        out = tmp_path / str(stage)
        checkpoints(out).save(learner, optimizer, scheduler, step=1, revision="1", score=0.1)
        left = {"calls": stage}

        def counted(function, left=left):
            def call(*arguments, **keywords):
                left["calls"] -= 1
                if left["calls"] == 0:
                    raise Killed
                if left["calls"] < 0:
                    return None  # a dead process cleans nothing up
                return function(*arguments, **keywords)

            return call

        with monkeypatch.context() as patched:
            for owner, name in [
                *((Path, name) for name in ("rename", "replace", "write_text", "chmod")),
                (checkpoint.shutil, "rmtree"),
                (saving.os, "fsync"),
            ]:
                patched.setattr(owner, name, counted(getattr(owner, name)))
            with suppress(Killed):
                checkpoints(out).save(learner, optimizer, scheduler, step=1 + stage % 2, revision="2", score=0.2)
        found = checkpoints(out)
        assert found.last.step in (1, 2)
        for one in (found.last, found.best):
            one.restore(*training(folder))
        found.save(learner, optimizer, scheduler, step=3, revision="3", score=0.3)
        assert found.last.step == found.best.step == 3
        assert sorted(path.name for path in out.iterdir()) == ["index.json", "step-000003"]
        if left["calls"] > 0:
            assert stage > 6, "the stages that exist were reached"
            return
    raise AssertionError("a write has more stages than this test reaches")


def test_the_index_is_plain_json(folder, tmp_path):
    checkpoints(tmp_path).save(*training(folder), step=2, revision="2", score=0.5)
    assert json.loads((tmp_path / "index.json").read_text()) == {"last": "step-000002", "best": "step-000002"}


def test_changed_weights_come_back_as_they_were(folder, tmp_path):
    import torch

    learner, optimizer, scheduler = training(folder)
    before = {name: tensor.clone() for name, tensor in learner.state().items()}
    found = checkpoints(tmp_path).save(learner, optimizer, scheduler, step=0, revision="0")
    disturb(learner)
    found.restore(learner, optimizer, scheduler)
    assert all(torch.equal(tensor, before[name]) for name, tensor in learner.state().items())
