"""C-RL: train one seat of a live system on the outcome of the system as a whole.

In: a system, a task, items to train on, settings, an open policy, a folder. Out: the content of `result.json`, beside
metrics, checkpoints and the policy as a plain Hugging Face folder. The loop is `Training.run` and `Training.step`.
The best checkpoint is chosen on dev; the task's items are evaluated before and after. Left out on purpose:
how runs are made (`rollouts`), what a gradient is (`updates`), how weights reach the engine (`policy`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from collabsim.loop import run_sync
from collabsim.run_folder import FITTED_FILE, RunFolder, read_json, write_json
from collabsim.system.fitted import Fitted
from collabsim.system.fitting import afit
from collabsim.system.system import System

from .batches import Batch, BatchMaker
from .evaluation import Evaluation, evaluate, gain, score
from .losses import Loss
from .metrics import Metrics, TrainProgress
from .partner_noise import evaluation_seed
from .records import Counts
from .rollouts import plan_of
from .settings import TrainConfig
from .stopwatch import Stopwatch
from .updates import UpdateStats, update

if TYPE_CHECKING:
    from collabsim.item import Item
    from collabsim.tasks import Task

    from .checkpoint import Checkpoint
    from .policy.learner import Learner
    from .policy.policy import Policy


RESULT_FILE, BEFORE_FILE, POLICY_FOLDER, CHECKPOINTS_FOLDER = "result.json", "before.json", "policy", "checkpoints"


class Training:
    """One training, from its first or its latest step to its result."""

    def __init__(
        self,
        system: System,
        task: Task,
        items: Sequence[Item],
        config: TrainConfig,
        policy: Policy,
        folder: RunFolder,
        concurrency: int,
        progress: TrainProgress,
    ) -> None:
        from .checkpoint import Checkpoints
        from .optimiser import make_optimiser, set_rate

        self.system, self.task, self.items, self.config = system, task, items, config
        self.policy, self.folder, self.concurrency, self.progress = policy, folder, concurrency, progress
        self.optimizer = make_optimiser(policy.learner.parameters(), config)
        self.set_rate = partial(set_rate, self.optimizer, config=config)
        self.checkpoints = Checkpoints(folder.file(CHECKPOINTS_FOLDER))
        self.loss, self.reference = _loss(config, policy), _reference(config, policy)
        self.done, self.counts, self.trained, self.lr = 0, Counts(), 0, 0.0
        self.watch = Stopwatch()

    # ---- the loop -----------------------------------------------------------------------------------------------------

    def run(self, prompt: str | None = None) -> dict[str, Any]:
        """Train to the end and measure the result."""
        self.fit()
        plan = plan_of(self.config, self.live)
        self.batch_maker = BatchMaker(self.live, self.items, self.config, plan, prompt)
        before = self.measure(BEFORE_FILE)
        self.resume()
        if self.done == 0 and self.checkpoints.last is None:
            self.keep(self.look_at_dev())  # the start is a candidate for the best, too
        self.progress.start(self.config.steps, self.done)
        with Metrics(self.folder.path, self.done) as metrics:
            while not self.finished:
                values = self.step()
                metrics.write(values)
                self.progress.advance(values)
        chosen = self.choose()
        return self.conclude(chosen, before, self.measure(None))

    def step(self) -> dict[str, Any]:
        """One update: runs of the live system, a gradient, new weights in the engine, a look at dev, a checkpoint."""
        watch = self.watch.reset()
        with watch("rollout"):
            batch = self.batch_maker.batch(self.policy.model, self.done, self.loss, self.concurrency)
        if batch.groups and not batch.counts.learner_calls:
            self.progress.note(f"step {self.done + 1}: no run asked {self.config.seat!r}, so the step changes nothing")
        with watch("learn"):
            self.lr = self.set_rate(self.done)
            stats = self.learn(batch)
        with watch("push"):
            if stats.rows:
                self.policy.push()
        self.done += 1
        self.counts += batch.counts
        self.trained += stats.tokens
        with watch("evaluate"):
            dev = self.look_at_dev()
        with watch("checkpoint"):
            self.keep(dev)
        return self.metrics(batch, stats, dev)

    def learn(self, batch: Batch) -> UpdateStats:
        """The update of the weights."""
        return update(
            self.policy.learner,
            self.optimizer,
            batch.rows,
            self.batch_maker.loss_of_rows(self.loss),
            divisor=self.batch_maker.divisor,
            grad_clip=self.config.grad_clip,
            budget=self.config.micro_tokens,
            epochs=self.config.epochs,
            reference=self.reference,
        )

    @property
    def learner_tokens(self) -> int:
        """Tokens that count against the budget: written by the learner, or read where it writes none."""
        return self.trained if self.config.objective == "sft" else self.counts.learner_tokens

    @property
    def finished(self) -> bool:
        """Whether the steps or the budget of tokens are used up."""
        budget = self.config.tokens
        return self.done >= self.config.steps or (budget is not None and self.learner_tokens >= budget)

    # ---- evaluation and choice ----------------------------------------------------------------------------------------

    def frozen(self) -> System:
        """The system with the learner's weights of now; the store keeps its replies under the content of these weights."""
        return self.live.replace(self.config.seat, self.policy.frozen())

    def look_at_dev(self) -> float | None:
        """The mean outcome on dev, at the steps where it is due."""
        every, last = self.config.eval.every, self.finished
        if not every or not self.task.dev or (self.done % every and not last):
            return None
        seed = evaluation_seed(self.config.seed)
        outcomes = run_sync(score(self.frozen(), self.task.dev, seed, concurrency=self.concurrency))
        return sum(outcomes) / len(outcomes)

    def measure(self, file: str | None) -> Evaluation | None:
        """The system on the task's items with the weights of now; kept in `file`, and read from it by a resumed training."""
        if not self.config.eval.test:
            return None
        record = read_json(self.folder.file(file)) if file else None
        if record is not None:
            return Evaluation.from_json(record)
        self.progress.note(f"measuring the system on {len(self.task)} items")
        method, seed = self.config.eval.values, evaluation_seed(self.config.seed)
        evaluation = run_sync(
            evaluate(self.frozen(), self.task, self.config.seat, seed, method=method, concurrency=self.concurrency)
        )
        if file:
            write_json(self.folder.file(file), evaluation.as_json())
        return evaluation

    def choose(self) -> Checkpoint:
        """The best checkpoint by dev, or the last where dev was never looked at; its weights are in the policy then."""
        chosen = self.checkpoints.best or self.checkpoints.last
        assert chosen is not None  # one is written before the first step
        if chosen.step != self.done:
            self.restore(chosen)
        self.policy.save(self.folder.file(POLICY_FOLDER))
        return chosen

    # ---- what is kept -------------------------------------------------------------------------------------------------

    def fit(self) -> None:
        """Fit the protocol on dev, once, with the weights of the start; the result holds for the whole training."""
        record = read_json(self.folder.file(FITTED_FILE))
        fitted = self.system.fitted
        if record is not None:
            fitted = Fitted(**record)
        elif self.task.dev and not fitted.inputs:
            start = self.system.replace(self.config.seat, self.policy.frozen())
            fitted = run_sync(afit(start, self.task.dev, seed=self.config.seed, concurrency=self.concurrency))
            write_json(self.folder.file(FITTED_FILE), asdict(fitted))
        self.live = replace(self.system, fitted=fitted)

    def resume(self) -> None:
        """Go on from the last checkpoint, where there is one."""
        last = self.checkpoints.last
        if last is not None and last.step:
            self.restore(last)
            self.done, position = last.step, last.position
            self.counts, self.trained = Counts(**position["counts"]), position["trained"]
            self.watch = Stopwatch(dict(position["seconds"]))

    def restore(self, checkpoint: Checkpoint) -> None:
        """Restore weights, optimiser and generators of a checkpoint, and push the weights into the engine."""
        checkpoint.restore(self.policy.learner, self.optimizer)
        self.policy.push(checkpoint.revision)

    def keep(self, dev: float | None) -> None:
        """Write a checkpoint, at the steps where it is due."""
        if dev is not None or self.done % self.config.checkpoint_every == 0 or self.finished:
            self.checkpoints.save(
                self.policy.learner,
                self.optimizer,
                step=self.done,
                revision=self.policy.revision,
                position={"counts": asdict(self.counts), "trained": self.trained, "seconds": self.watch.total},
                score=dev,
            )

    def metrics(self, batch: Batch, stats: UpdateStats, dev: float | None) -> dict[str, Any]:
        """The line of one step."""
        return {
            "step": self.done,
            "revision": self.policy.revision,
            "lr": self.lr,
            **batch.metrics(),
            "update": asdict(stats),
            "tokens": {"learner": self.learner_tokens, "partners": self.counts.partner_tokens},
            "dev": dev,
            "seconds": self.watch.lap,
        }

    def conclude(self, chosen: Checkpoint, before: Evaluation | None, after: Evaluation | None) -> dict[str, Any]:
        """`result.json`."""
        result: dict[str, Any] = {
            "objective": self.config.objective_name,
            "seat": self.config.seat,
            "steps": self.done,
            "chosen": {"step": chosen.step, "dev": chosen.score, "by": "dev" if self.checkpoints.best else "last"},
            "biased": self.loss.biased,
            "cost": {
                **asdict(self.counts),
                "learner_tokens": self.learner_tokens,
                "trained_tokens": self.trained,
                "seconds": self.watch.total,
            },
        }
        if before is not None and after is not None:
            result |= {"before": before.summary(), "after": after.summary(), "gain": _gains(before, after)}
            result["per_item"] = {
                "items": [item.id for item in self.task.items],
                "before": list(before.system),
                "after": list(after.system),
            }
        write_json(self.folder.file(RESULT_FILE), result)
        return result


def _gains(before: Evaluation, after: Evaluation) -> dict[str, Any]:
    individual = (
        None if before.individual is None or after.individual is None else gain(before.individual, after.individual)
    )
    return {"system": gain(before.system, after.system), "individual": individual}


def _loss(config: TrainConfig, policy: Policy) -> Loss:
    loss = config.policy_loss()
    # An engine that shares the learner's weights samples from the learner's own distribution. In float32 the rest is rounding
    # that depends on the batch, and correcting it would only keep a resumed training from being the same to the last bit.
    same = policy.shares_weights and policy.learner.dtype == "float32"
    return replace(loss, cap=None) if same else loss


def _reference(config: TrainConfig, policy: Policy) -> Learner | None:
    """The start, for the KL term."""
    if not config.kl:
        return None
    from .policy.learner import Learner

    return Learner.load(policy.learner.folder, dtype=config.dtype, device=config.device, autocast=config.autocast)
