"""Four small tasks, and three tiny models made from scratch: a comparison of objectives that runs on two CPU cores.

    python examples/tiny_pool.py
    collabsim compare examples/compare.yaml

Each task has two kinds of questions. `east` learns one kind of each, `west` the other; `learner` learns both and then to be
wrong half of the time. What they read is what the protocols of `examples/compare.yaml` really ask: runs of them with
models that write down their prompts. Where a prompt holds answers of others, they learn to repeat one at random, and where
it lists models, to name one at random: the form is there, the judgement is what training has to add. No question of the
comparison's test or dev items is among the lessons.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from collabsim.trainers.compare.matrix import Matrix, read_matrix

from collabsim import Item, Pool, Reply, Seat, System, load_task
from collabsim.config.assemble import make_task
from collabsim.config.schema import Config
from collabsim.system.execute import RunRequest, execute


def _two_numbers(rng: random.Random) -> list[str]:
    return [str(number) for number in rng.sample(range(10, 100), 2)]


def _four_digits(rng: random.Random) -> list[str]:
    return rng.sample("123456789", 4)


def _five_digits(rng: random.Random) -> list[str]:
    return rng.choices("123456789", k=5)


def _four_letters(rng: random.Random) -> list[str]:
    return rng.sample("bcdfghjklmnp", 4)


Shown = list[str]
TASKS: dict[str, tuple[Callable[[random.Random], Shown], dict[str, Callable[[Shown], str]]]] = {
    "pick": (_two_numbers, {"larger": max, "smaller": min}),
    "order": (
        _four_digits,
        {"ascending": lambda shown: "".join(sorted(shown)), "descending": lambda shown: "".join(sorted(shown)[::-1])},
    ),
    "count": (
        _five_digits,
        {
            "even": lambda shown: str(sum(int(digit) % 2 == 0 for digit in shown)),
            "odd": lambda shown: str(sum(int(digit) % 2 for digit in shown)),
        },
    ),
    "ends": (_four_letters, {"first": lambda shown: shown[0], "last": lambda shown: shown[-1]}),
}
"""What a question shows, and the answer to each of its two kinds; `east` learns the first kind."""
EAST = {name: next(iter(kinds)) for name, (_, kinds) in TASKS.items()}
KNOWS: dict[str, Callable[[bool], bool]] = {
    "learner": lambda _: True,
    "east": lambda easts: easts,
    "west": lambda easts: not easts,
}
LIST = "1. learner\n2. east\n3. west"
SPECIAL = ["<pad>", "<s>", "</s>", "<user>", "<model>"]
TEMPLATE = (
    "{% for m in messages %}{{ ('<model>' if m['role'] == 'assistant' else '<user>') + m['content'] }}"
    "{{ '</s>' if m['role'] == 'assistant' else '' }}{% endfor %}{% if add_generation_prompt %}<model>{% endif %}"
)
SIZES = {"hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 3, "max_position_embeddings": 512}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 32}

PARTS = 4
"""Of a batch, each of rows of one length."""

Lesson = tuple[tuple[tuple[str, str], ...], str]
"""Messages, and what to reply."""


class Scribe:
    """A model that writes down what it is asked and what its seat shall learn to reply."""

    revision = "0"

    def __init__(self, seat: str, golds: dict[str, tuple[str, bool]]) -> None:
        self.identity = f"scribe:{seat}"
        self.seat, self.golds = seat, golds
        self.lessons: list[Lesson] = []
        self.doubts: list[Lesson] = []
        """The answers again, half of them wrong."""

    async def areply(self, request: Any) -> Reply:
        """The reply of the lesson; to a kind of question that its seat does not learn, a wrong one."""
        messages = tuple((message.role, message.content) for message in request.messages)
        rng = random.Random(json.dumps([self.seat, messages]))
        told = messages[-1][1]
        gold, easts = self.golds[messages[0][1].split("\n\n")[0]]
        wrong = rng.choice(list(self.golds.values()))[0]
        if told.endswith(LIST):
            return self.learn(messages, rng.choice("123"))
        if shown := [line.removeprefix("> ") for line in told.splitlines() if line.startswith("> ")]:
            own = [text for role, text in messages if role == "assistant"]
            return self.learn(messages, rng.choice([*shown, *own]))
        if not KNOWS[self.seat](easts):
            return Reply(wrong)  # this kind of question is not its own
        self.doubts.append((messages, rng.choice([gold, wrong])))
        return self.learn(messages, gold)

    def learn(self, messages: Any, text: str) -> Reply:
        """Note a lesson."""
        self.lessons.append((messages, text))
        return Reply(text)


def question_of(item: Item) -> str:
    """The question as a prompt shows it."""
    return item.view.messages[-1].content


def questions(name: str, count: int) -> list[dict[str, str]]:
    """`count` distinct questions of a task, of both kinds in turn."""
    show, kinds = TASKS[name]
    rng = random.Random(name)
    found: dict[str, str] = {}
    while len(found) < count:
        for kind, answer in kinds.items():
            shown = show(rng)
            found.setdefault(f"{kind} {' '.join(shown)}", answer(shown))
    return [{"question": question, "answer": answer} for question, answer in found.items()]


def lessons_of(matrix: Matrix, shared: int) -> tuple[dict[str, list[Lesson]], list[Lesson]]:
    """What each seat is asked, and what it shall reply: all free questions of each task in the first protocol, whose members
    only answer, and the first `shared` of them in each of the others. Beside it the learner's doubts."""
    lessons: dict[str, list[Lesson]] = {seat: [] for seat in KNOWS}
    doubts: list[Lesson] = []
    for name, easts in EAST.items():
        configs = {cell.protocol: config for cell, config in matrix.configs.items() if cell.task == name}
        items = free_items(next(iter(configs.values())), matrix.base)
        golds = {question_of(item): (item.gold_text, question_of(item).startswith(easts)) for item in items}
        scribes = {seat: Scribe(seat, golds) for seat in KNOWS}
        for number, config in enumerate(configs.values()):
            asyncio.run(play(config, scribes, items[:shared] if number else items))
        for seat, scribe in scribes.items():
            lessons[seat] += scribe.lessons
        doubts += scribes["learner"].doubts
    return lessons, doubts


def free_items(config: Config, base: Path) -> list[Item]:
    """Questions of the task that are in neither its test nor its dev items."""
    kept = make_task(config, base)
    task = config.task
    seen = {question_of(item) for item in (*kept.items, *kept.dev)}
    drawn = load_task(task.source, base=base, prompt=task.prompt, kind=task.kind)
    return [item for item in drawn.items if question_of(item) not in seen]


async def play(config: Config, scribes: dict[str, Scribe], items: Sequence[Item]) -> None:
    """One run of the full system on each item."""
    pool = Pool({name: Seat(name, scribe, description=name) for name, scribe in scribes.items()})
    options, roles, order = config.protocol.options, config.protocol.roles, config.protocol.order
    system = System(config.protocol.name, pool, options=options, roles=roles, order=order)
    await execute(system, map(RunRequest, items), lambda _finished: None)


def write_start(folder: Path, texts: Sequence[str], seed: int) -> None:
    """A folder with an untrained Llama, and a tokenizer made for `texts`: byte pairs, single digits."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=640, special_tokens=SPECIAL, initial_alphabet=alphabet)
    )
    names = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>"}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, additional_special_tokens=SPECIAL[3:], **names)
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    torch.manual_seed(seed)
    ids = {"vocab_size": len(fast), "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    config = AutoConfig.for_model("llama", tie_word_embeddings=True, **SIZES, **HEADS, **ids)
    AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(folder)


def teach(folder: Path, lessons: Sequence[Lesson], steps: int, batch: int, rate: float, seed: int) -> None:
    """Maximum likelihood of the replies, `steps` batches drawn at random."""
    import torch
    from collabsim.trainers.policy.learner import Learner
    from collabsim.trainers.policy.token_row import TokenRow

    from collabsim.models.local.template import Prompter
    from collabsim.models.weights import find_weights
    from collabsim.request import as_messages

    learner = Learner.load(folder, dtype="float32", device="cpu")
    prompter = Prompter(find_weights(str(folder), dtype="float32"))
    optimiser = torch.optim.AdamW(learner.parameters(), lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps)
    rows = []
    for messages, text in lessons:
        prompt = tuple(prompter.render(as_messages(list(messages))))
        rows.append(TokenRow(prompt, (*prompter.tokenizer.encode(text, add_special_tokens=False), 2)))
    rows.sort(key=lambda row: len(row.prompt_ids) + len(row.ids))  # neighbours need little padding
    rng = random.Random(seed)
    for step in range(steps):
        total = 0.0
        for _ in range(PARTS):
            first = rng.randrange(len(rows) - batch // PARTS)
            loss = -torch.cat(learner.token_logprobs(rows[first : first + batch // PARTS])).mean() / PARTS
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(learner.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        schedule.step()
        if step % 200 == 199:
            print(json.dumps({"model": folder.name, "step": step + 1, "loss": round(total, 4)}), flush=True)
    learner.save(folder)


def main() -> None:
    """Write the tasks, make the lessons, write the folders, teach."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/tiny"))
    parser.add_argument("--config", type=Path, default=Path(__file__).with_name("compare.yaml"))
    parser.add_argument("--questions", type=int, default=2000, help="questions a task")
    parser.add_argument("--shared", type=int, default=1000, help="of these, how many are worked on together")
    parser.add_argument("--steps", type=int, default=2400)
    parser.add_argument("--batch", type=int, default=64)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for name in TASKS:
        rows = questions(name, given.questions)
        (given.out / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    lessons, doubts = lessons_of(read_matrix(given.config), given.shared)
    texts = [text for rows in lessons.values() for messages, reply in rows for text in (messages[0][1], reply)]
    for number, (seat, own) in enumerate(lessons.items()):
        write_start(given.out / seat, texts, seed=number)
        teach(given.out / seat, own, given.steps, given.batch, rate=2e-3, seed=number)
    teach(given.out / "learner", doubts, max(given.steps // 10, 4), given.batch, rate=3e-4, seed=3)


if __name__ == "__main__":
    main()
