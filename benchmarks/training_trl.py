"""TRL's GRPOTrainer as a side of the training benchmark.

In: a number of steps. Out: `step()`, which trains once and says what that took. Same prompts, group, tokens, loss and rate
as ours; TRL generates with transformers. Left out on purpose: our own sides; see `training_sides.py`.
"""

from __future__ import annotations

import threading
from tempfile import mkdtemp
from time import perf_counter, process_time
from typing import Any

from training_work import GROUP, ITEMS, LR, TOKENS, Coin, Step, prepared, visits

from collabsim.store import GenerationStore


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
        ids = [model.prompter.render(visit.item.view.messages) for visit in visits(made, 0, steps)]
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
