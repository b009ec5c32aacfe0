"""The sides of the training benchmark, each in a process of its own: `python training_sides.py KIND STEPS`.

In: a kind (`trl`, or the engine of our trainer), then a line on standard input for each step: `alone` (one model that
answers by itself) or `vote` (the same seat in a vote with two partners whose replies are stored). Out: a `Step` as a line
of JSON. All sides read the same items in the same order through the same prompt ids, write replies of one length (nothing
ends them early), and score them by a coin of their words, so that nearly every group gives a gradient.
Left out on purpose: what is compared and recorded; see `bench_training_step.py`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from tempfile import mkdtemp
from time import perf_counter, process_time
from typing import Any

from collabsim.trainers.batches import BatchMaker
from collabsim.trainers.metrics import TrainProgress
from collabsim.trainers.partner_noise import visit_seed
from collabsim.trainers.policy.policy import Policy
from collabsim.trainers.rollouts import plan_of
from collabsim.trainers.training import Training
from training_trl import Trl
from training_work import DRAWS, GROUP, Step, prepared, system_of, visits

from collabsim.run_folder import RunFolder
from collabsim.store import GenerationStore
from collabsim.system.execute import RunRequest, run_all


def open_policy(engine: str) -> Policy:
    """The learner and its engine, whose replies end by their length alone."""
    from collabsim.models.engines import vllm_cpu
    from collabsim.models.engines.vllm_requests import sampling_params

    def whole_length(request: Any) -> Any:
        params = sampling_params(request)
        params.ignore_eos = True
        return params

    vllm_cpu.sampling_params = whole_length
    model = prepared("individual").system(GenerationStore(None)).pool["learner"].model
    policy = Policy.open(model.model_copy(update={"engine": engine, "kv_space_gib": 0.5}))
    if engine == "transformers":
        policy.engine._batch._endings.end_ids = frozenset()
    return policy


class Ours:
    """Our trainer by one objective, over an open policy."""

    def __init__(self, objective: str, policy: Policy, store: GenerationStore, optimizer: Any = None) -> None:
        made = prepared(objective)
        folder = RunFolder(mkdtemp(), {})
        folder.open()
        self.training = Training(
            system_of(made, store), made.task, made.items, made.train, policy, folder, 100, TrainProgress()
        )
        self.training.optimizer = optimizer or self.training.optimizer
        self.training.live = self.training.system
        plan = plan_of(made.train, self.training.live)
        self.training.batch_maker = BatchMaker(self.training.live, made.items, made.train, plan, made.prompt)

    def step(self) -> Step:
        before, began = self.training.counts, process_time()
        line = self.training.step()
        used, lap = process_time() - began, line["seconds"]
        assert self.training.counts.partner_generations == 0, "the partners' replies were to be stored"
        wrote = self.training.counts.learner_tokens - before.learner_tokens
        return Step(lap["rollout"], lap["learn"], lap["push"], used, wrote, line["update"]["rows"])


def partners(store: GenerationStore, first: int, steps: int, group: int) -> Step:
    """The runs of the vote's steps without the learner: what its partners and the graph take; generated where not stored."""
    made = prepared("system")
    system = system_of(made, store)

    requests = [
        RunRequest(visit.item, system.everyone - {"learner"}, run_seed=visit_seed(0, visit.number), replica=draw)
        for visit in visits(made, first, steps)
        for draw in range(DRAWS)
        for _ in range(group)
    ]
    began, used = perf_counter(), process_time()
    assert not any(run.episode.failed for run in asyncio.run(run_all(system, requests)))
    return Step(perf_counter() - began, 0.0, 0.0, process_time() - used, 0, 0)


def main(kind: str, steps: int) -> None:
    """Answer each line of standard input by a step; what libraries print goes to standard error."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    arms: dict[str, Any] = {}
    if kind == "trl":
        arms["alone"] = Trl(steps).step
    else:
        opened = GenerationStore(Path(mkdtemp()) / "store.sqlite")
        partners(opened, 0, steps, 1)
        policy = open_policy(kind)
        alone = Ours("individual", policy, opened)
        vote = Ours("system", policy, opened, alone.training.optimizer)
        arms = {"alone": alone.step, "vote": vote.step, "partners": lambda: partners(opened, steps - 1, 1, GROUP)}
    print(json.dumps("ready"), file=out, flush=True)
    for line in sys.stdin:
        print(json.dumps(asdict(arms[line.strip()]())), file=out, flush=True)
    os._exit(0)  # TRL's thread waits for its next turn


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
