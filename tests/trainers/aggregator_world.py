"""A world in which an aggregator can learn whom to trust: a tiny model, made from scratch, that reads two proposals.

The expert proposes the gold, A or B; the fool proposes C or D. Their proposals come in an order of the item's own and without
names. The aggregator starts by repeating either at random; what it answers alone is a guess, whatever it has learnt.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from router_world import start_folder
from scripted import Scripted, last_words

from collabsim import Pool, Sampling, Seat, System, Task, make_item
from collabsim.episode import Reply
from collabsim.quoting import quote_all
from collabsim.request import Message, with_text
from collabsim.seeds import derive_seed

AGGREGATE = "{answers}"


def aggregator_folder(folder: Path, seed: int = 0, steps: int = 250) -> Path:
    """A two-layer Llama of 100k parameters that repeats one of two proposals."""
    import torch
    from collabsim.trainers.learner import Learner
    from collabsim.trainers.rows import TokenRow

    from collabsim.models.template import Prompter
    from collabsim.models.weights import find_weights

    start_folder(folder, seed)
    learner = Learner.load(folder, dtype="float32", device="cpu")
    prompter = Prompter(find_weights(str(folder), dtype="float32"))
    optimiser = torch.optim.AdamW(learner.parameters(), lr=3e-3)
    rows = []
    for number in range(400):
        letters = [letter for letter in "ABCD" if derive_seed("shown", number, letter) % 2][:2]
        if len(letters) == 2:
            shown = letters if derive_seed("turn", number) % 2 else letters[::-1]
            prompt = prompter.render(with_text((question(number % 90),), quote_all(Reply(text) for text in shown)))
            rows += [
                TokenRow(prompt, (*prompter.tokenizer.encode(text, add_special_tokens=False), 2)) for text in shown
            ]
    rows += [
        TokenRow(
            prompter.render((question(number),)), (*prompter.tokenizer.encode(letter, add_special_tokens=False), 2)
        )
        for number in range(90)
        for letter in "ABCD"
    ]
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        chosen = [rows[index] for index in torch.randint(len(rows), (64,), generator=generator).tolist()]
        loss = -torch.cat(learner.token_logprobs(chosen)).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    learner.save(folder)
    return folder


def question(number: int) -> Message:
    return Message("user", f"item {100 + number}")


def item(number: int) -> Any:
    """Its gold is A or B."""
    return make_item(f"item {100 + number}", "AB"[derive_seed("gold", number) % 2], kind="text", prompt="{question}")


def expert(request: Any) -> str:
    number = int(last_words(request).split()[1]) - 100
    return "AB"[derive_seed("gold", number) % 2]


def fool(request: Any) -> str:
    return "CD"[derive_seed("fool", last_words(request)) % 2]


def aggregated_system(folder: Path, engine: str = "transformers") -> System:
    """The aggregator as a seat beside the expert and the fool."""
    from collabsim.models.local import LocalModel

    model = LocalModel(spec=str(folder), engine=engine, dtype="float32")
    pool = {"me": Seat("me", model, sampling=Sampling(temperature=1.0, max_tokens=2))}
    pool |= {"expert": Seat("expert", Scripted("expert", expert)), "fool": Seat("fool", Scripted("fool", fool))}
    return System("trained_aggregator", Pool(pool), options={"aggregator": "me", "aggregate": AGGREGATE})


def task(tests: int = 200, dev: int = 32) -> Task:
    return Task("aggregator world", tuple(map(item, range(300, 300 + tests))), tuple(map(item, range(600, 600 + dev))))


def train_items(count: int = 96) -> list[Any]:
    return [item(number) for number in range(count)]
