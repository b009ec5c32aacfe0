"""How the files in this folder came to be; kept so that a reader can check them, not to be run again.

They were made by the code of commit 83fb394, before its modules were rearranged:

    git worktree add /tmp/old 83fb394 && cp -r tests/before tests/test_before.py /tmp/old/tests  # installed there, editable
    cd /tmp/old && OMP_NUM_THREADS=1 python tests/before/make.py

By hand: the configs, `chain_app.py`, and the questions in `*.jsonl`. Made here:

- `models/`: a tiny learner that says 1 or 2 at random, and three models for a merge, of random weights;
- `finished/NAME/`: the run folder of `collabsim sweep NAME.yaml`, all with `store.sqlite` as their generation store;
- `half/NAME/`: the same, killed with SIGKILL inside the sweep, with a store of its own that was thrown away;
- `training/NAME/`, `training.sqlite`: folder and store of `collabsim train NAME.yaml`, killed in its third step of four;
- `expected/NAME/`: what that training comes to when it is resumed (with the weights, to the last bit, of one in one go);
- `MANIFEST.json`: identities that depend on content only (`identities.py`).

Afterwards write-ahead logs are written into their files, and event files of TensorBoard are left out: they hold the host's
name. Nothing here names a folder outside of this one: commands run with this folder (a copy of it) as the current one.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).parent
TESTS = HERE.parent
EXAMPLES = TESTS.parent / "examples"
SWEEPS = ("debate", "cascade", "trained_router", "chain", "notes", "fusion", "soup")
HALF = {"debate": 31, "cascade": 40}
"""Runs after which a sweep is killed."""
TRAININGS = ("train", "train_lora")
KILLED_STEP = 3
INPUTS = ("*.yaml", "*.jsonl", "*.py")


def main() -> None:
    """Everything, in a temporary folder first: a failure leaves this one as it is."""
    with TemporaryDirectory() as scratch:
        place = Path(scratch)
        for file in [path for pattern in INPUTS for path in HERE.glob(pattern)]:
            shutil.copy(file, place)
        make_models(place / "models")
        for name in SWEEPS:
            run(place, "sweep", f"{name}.yaml", "--out", f"finished/{name}", "--store", "store.sqlite")
        for name, runs in HALF.items():
            where = ("--out", f"half/{name}", "--store", "half.sqlite", "--set", "concurrency=4")
            run(place, "sweep", f"{name}.yaml", *where, dies_after=f"runs={runs}")
            (place / "half.sqlite").unlink()
        make_trainings(place)
        for file in place.rglob("*.sqlite"):
            settle(file)
        with current(place):
            write_manifest(place / "MANIFEST.json")
        for name in ("models", "finished", "half", "training", "expected"):
            shutil.rmtree(HERE / name, ignore_errors=True)
            shutil.copytree(place / name, HERE / name, ignore=shutil.ignore_patterns("tensorboard"))
        for name in ("store.sqlite", "training.sqlite", "MANIFEST.json"):
            shutil.copy(place / name, HERE)


def run(place: Path, *args: str, dies_after: str = "") -> None:
    """A command in a process of its own, which kills itself where `dies_after` says."""
    command = [sys.executable, __file__, f"--dies-after={dies_after}", *args]
    cache = {"XDG_CACHE_HOME": str(place / "cache"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=place, env={**os.environ, **cache}, check=False, stdout=subprocess.DEVNULL)
    if done.returncode != (-signal.SIGKILL if dies_after else 0):
        raise SystemExit(f"{args}: exit code {done.returncode}")


def command(dies_after: str, args: list[str]) -> None:
    """The command line as it is, in this process, with a death at some moment."""
    from collabsim.cli import main as collabsim

    kind, _, count = dies_after.partition("=")
    if kind == "runs":
        die_after_runs(int(count))
    elif kind == "steps":
        die_in_step(int(count))
    sys.argv = ["collabsim", *args]  # as it stands in `run.json`
    collabsim()


def die_after_runs(count: int) -> None:
    """SIGKILL when so many runs of a sweep are in its folder."""
    from collabsim.coalitions.outcomes import OutcomeLog

    record, calls = OutcomeLog.record, []

    def deadly(self: Any, *args: Any) -> None:
        record(self, *args)
        calls.append(1)
        if len(calls) == count:
            self.flush()
            os.kill(os.getpid(), signal.SIGKILL)

    OutcomeLog.record = deadly  # type: ignore[method-assign]


def die_in_step(number: int) -> None:
    """SIGKILL in a step of a training, after its runs and its update, before the new weights are kept."""
    from collabsim.trainers.crl import Training

    learn, calls = Training.learn, []

    def deadly(self: Any, batch: Any) -> Any:
        stats = learn(self, batch)
        calls.append(1)
        if len(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return stats

    Training.learn = deadly  # type: ignore[method-assign]


def settle(file: Path) -> None:
    """Write what a killed process left in the log into the file itself."""
    with closing(sqlite3.connect(file)) as opened:
        opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        opened.execute("VACUUM")


@contextmanager
def current(place: Path) -> Iterator[None]:
    """`place` as the current folder."""
    before = Path.cwd()
    os.chdir(place)
    try:
        yield
    finally:
        os.chdir(before)


def write_manifest(file: Path) -> None:
    """The identities as this code has them."""
    sys.path.insert(0, str(TESTS))
    from before.identities import generated, identities

    made = {"identities": identities(EXAMPLES), "generated": generated(EXAMPLES)}
    file.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


# ---- models and trainings -------------------------------------------------------------------------------------------------


def make_models(folder: Path) -> None:
    """Byte-level Llamas of 10 to 100 kilobytes."""
    sys.path[:0] = [str(TESTS), str(TESTS / "trainers")]
    from router_world import teach
    from tiny_folders import CHATML, write_folder

    from collabsim import Message

    for seed, name in enumerate(("base", "one", "two")):
        write_folder(folder / name, adds_bos=False, seed=seed)
    learner = write_folder(folder / "learner", template=CHATML, adds_bos=False)
    start_learner(learner)
    questions = [(Message("user", f"heads or tails? {k}"),) for k in range(24)]
    teach(learner, [(question, reply) for question in questions for reply in "12"], most=4000)


def start_learner(folder: Path) -> None:
    """Weights for a learner, in place of those that `write_folder` made."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    vocabulary = len(json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]) + 2
    (folder / "model.safetensors").unlink()
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "max_position_embeddings": 512}
    ids = {"vocab_size": vocabulary, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = AutoConfig.for_model("llama", tie_word_embeddings=True, **sizes, **heads, **ids)
    AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(folder)


def make_trainings(place: Path) -> None:
    """Some that are killed, and what they come to when they are resumed."""
    for name in TRAININGS:
        command = ("train", f"{name}.yaml", "--store", "training.sqlite", "--out", f"training/{name}")
        run(place, *command, dies_after=f"steps={KILLED_STEP}")
        run(place, "train", f"{name}.yaml", "--out", f"whole/{name}", "--store", f"{name}.sqlite")
    settle(place / "training.sqlite")
    for name in TRAININGS:
        resumed = place / "resumed" / name  # each with a copy of the store: one must not find what the other generated
        shutil.copytree(place, resumed, ignore=shutil.ignore_patterns("resumed"))
        run(resumed, "train", f"{name}.yaml", "--resume", "--store", "training.sqlite", "--out", f"training/{name}")
        expected, folder = place / "expected" / name, resumed / "training" / name
        expected.mkdir(parents=True)
        for file in ("result.json", "metrics.jsonl"):
            shutil.copy(folder / file, expected)
        shutil.copy(last_weights(folder), expected)
        if last_weights(folder).read_bytes() != last_weights(place / "whole" / name).read_bytes():
            raise SystemExit(f"{name}: resumed, it has other weights than in one go")


def last_weights(folder: Path) -> Path:
    """The weights of a training's last checkpoint."""
    last = json.loads((folder / "checkpoints" / "index.json").read_text())["last"]
    return folder / "checkpoints" / last / "weights.safetensors"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        command(sys.argv[1].partition("=")[2], sys.argv[2:])
    else:
        main()
