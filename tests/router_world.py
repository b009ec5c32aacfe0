"""A world in which only the system can teach: a tiny router, made from scratch, before two frozen specialists.

The router's own answer to a question is worth nothing; its choice of specialist decides the outcome. It starts with the
form of a choice (1 or 2, at random) and learns which specialist knows which kind of question.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from collabsim.trainers.policy.token_row import TokenRow
from scripted import Scripted, last_words
from tiny_folders import CHATML, write_folder

from collabsim import Pool, Sampling, Seat, System, Task, make_item

WINDOW = 1024
VERBS = {"add": lambda a, b: a + b, "mul": lambda a, b: a * b}
ROUTER = Sampling(temperature=1.0, max_tokens=2)


def router_folder(folder: Path, seed: int = 0) -> Path:
    """A model that says 1 or 2 at random."""
    start_folder(folder, seed)
    teach(folder, [(question_to_router(*pair), number) for pair in pairs("form", 8) for number in "12"])
    return folder


def start_folder(folder: Path, seed: int) -> None:
    """An untrained two-layer Llama of 100k parameters (vLLM's CPU attention wants heads of 32)."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.set_num_threads(1)
    write_folder(folder, template=CHATML, adds_bos=False)
    (folder / "model.safetensors").unlink()
    vocabulary = len(json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]) + 2
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "head_dim": 32}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
    ids = {"vocab_size": vocabulary, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    config = AutoConfig.for_model("llama", max_position_embeddings=WINDOW, **sizes, **heads, **ids)
    torch.manual_seed(seed)
    AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(folder)


TRAINING: dict[str, Any] = {
    "seat": "router",
    "loss": "dr_grpo",
    "group": 8,
    "items_per_step": 12,
    "steps": 60,
    "lr": 4e-4,  # 1e-3 on eight items a step has been seen to settle on one specialist for all
    "norm_tokens": 1,
    "eval": {"every": 10, "values": "none"},
}
"""Enough to learn it, whatever the seed."""
LEARNED = 0.39
"""Loss (nats a token) of lessons that say two things at random, half of whose tokens are certain: at best 0.347."""


def teach(folder: Path, lessons: list[tuple[Any, str]], most: int = 1500) -> None:
    """Maximum likelihood of what shall be said to each prompt, until it is learned: two things, one half each."""
    import torch
    from collabsim.trainers.policy.learner import Learner

    from collabsim.models.local.template import Prompter
    from collabsim.models.weights import find_weights

    learner = Learner.load(folder, dtype="float32", device="cpu")
    prompter = Prompter(find_weights(str(folder), dtype="float32"))
    optimizer = torch.optim.AdamW(learner.parameters(), lr=2e-3, betas=(0.9, 0.98))
    replies = {text: (*prompter.tokenizer.encode(text, add_special_tokens=False), 2) for _, text in lessons}
    rows = [TokenRow(prompter.render(messages), replies[text]) for messages, text in lessons]
    for _ in range(most):
        loss = -torch.cat(learner.token_logprobs(rows, 1.0)).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learner.parameters(), 0.3)
        optimizer.step()
        if loss < LEARNED:
            break
    else:
        raise AssertionError(f"the form was not learned: {float(loss):.3f}")
    learner.save(folder)


def pairs(split: str, count: int) -> list[tuple[str, int, int]]:
    """Questions of a split; splits never share one."""
    first = {"form": 0, "train": 1, "dev": 2, "test": 3}[split]
    return [(verb, 10 + k // 7, 11 + 4 * (k % 7) + first) for k in range((count + 1) // 2) for verb in VERBS][:count]


def item(verb: str, a: int, b: int) -> Any:
    return make_item(f"{verb} {a} {b}", str(VERBS[verb](a, b)), prompt="{question}")


def question_to_router(verb: str, a: int, b: int) -> Any:
    from collabsim.request import Message

    return (Message("user", f"{verb} {a} {b}\n\n1. add\n2. mul"),)


def specialist(verb: str) -> Scripted:
    """Right on its own kind of question, wrong on the other."""

    def say(request: Any) -> str:
        asked, a, b = re.match(r"(\w+) (\d+) (\d+)", last_words(request)).groups()
        return f"Answer: {VERBS[verb](int(a), int(b)) if asked == verb else -1}"

    return Scripted(f"specialist in {verb}", say)


def routed_system(folder: Path, engine: str = "transformers", **settings: Any) -> System:
    """The router as a helper before both specialists, always listed in one order."""
    from collabsim.models.local.local_model import LocalModel

    model = LocalModel(spec=str(folder), engine=engine, dtype="float32", **settings)
    pool = {verb: Seat(verb, specialist(verb), description=verb) for verb in VERBS}
    return System(
        "prompt_router",
        pool,
        options={"route": "{models}"},
        helpers=Pool({"router": Seat("router", model, sampling=ROUTER)}),
        roles={"router": "router"},
        order=tuple(VERBS),
    )


def task(tests: int = 200, dev: int = 32) -> Task:
    return Task(
        "router world", tuple(item(*p) for p in pairs("test", tests)), tuple(item(*p) for p in pairs("dev", dev))
    )


def train_items(count: int = 96) -> list[Any]:
    return [item(*pair) for pair in pairs("train", count)]
