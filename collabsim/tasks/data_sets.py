"""The data sets that are known by name: one declaration each.

In: a name such as `gsm8k`. Out: where it comes from, how its rows are read, and how its items are asked. Prompt, kind of
answer and rows belong together, so they stand together; whatever a set's files do wrong is mended by the rules that hold
for all sets (see `record.py`, `selection.py`) or by its reader (see `row_forms.py`). Left out on purpose: the data.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from collabsim.errors import ConfigError
from collabsim.tasks.row_forms import (
    Reader,
    bbh,
    chembench,
    humaneval,
    mbpp,
    mmlu_redux,
    option_columns,
    popqa,
    protocols,
    renamed,
    theoremqa,
    truthfulqa,
    with_distractors,
    worked,
)

Area = Literal["reasoning", "knowledge", "coding", "science"]
EVERY_CONFIG = ("*",)
BOXED = "{question}\n\nEnd with the final answer in \\boxed{}."

LAB_BENCH_TEXTS = ("LitQA2", "DbQA", "SuppQA", "ProtocolQA", "SeqQA", "CloningScenarios")
"""Parts of LAB-Bench without pictures."""


@dataclass(frozen=True, slots=True)
class Hub:
    """Where a data set lives on the Hugging Face hub."""

    id: str
    test: str = "test"
    """Name of the split that is evaluated on."""
    dev: str | None = None
    """Name of the split for choosing and fitting; without one, a quarter of `test` by content is kept for it."""
    configs: tuple[str, ...] = ()
    """Configurations to read, `*` for all; rows tell theirs in the column `config`."""
    read: Reader = field(default_factory=renamed)
    shuffle: bool = False
    """True where the files put the right option in a fixed place."""


@dataclass(frozen=True, slots=True)
class DataSet:
    """A data set, its two roads, and how its items are asked and scored."""

    name: str
    area: Area
    kind: str
    """Kind of its answers; `mixed` where the reader says it item by item."""
    hub: Hub
    read: Reader = field(default_factory=renamed)
    """How rows of MoCo's files are read."""
    prompt: str | None = None
    """Template in place of the kind's own wording."""
    shuffle: bool = False
    """Whether options are put into an order of the item's own by default."""
    nested: str = ""
    """Name of a family of sets that hold the same items; only one of a family is used at a time."""


def _gpqa(name: str) -> DataSet:
    wrong = tuple(f"Incorrect Answer {place}" for place in (1, 2, 3))
    read = with_distractors("Correct Answer", wrong, question="Question", topic="Subdomain")
    hub = Hub("Idavidrein/gpqa", test="train", configs=(name,), read=read, shuffle=True)
    return DataSet(name, "science", "choice", hub, nested="gpqa")


_INPUT = renamed(question="input", answer="output", topic="domain")

_SETS = (
    DataSet(
        "gsm8k",
        "reasoning",
        "number",
        Hub("openai/gsm8k", dev="train", configs=("main",)),
        read=_INPUT,
    ),
    DataSet(
        "math",
        "reasoning",
        "expression",
        Hub(
            "EleutherAI/hendrycks_math",
            dev="train",
            configs=EVERY_CONFIG,
            read=worked(question="problem", answer="solution", topic="type"),
        ),
        read=_INPUT,
        prompt=BOXED,
    ),
    DataSet("bbh", "reasoning", "mixed", Hub("lukaemon/bbh", configs=EVERY_CONFIG, read=bbh), read=bbh),
    DataSet("theoremqa", "reasoning", "mixed", Hub("TIGER-Lab/TheoremQA", read=theoremqa), read=theoremqa),
    DataSet(
        "mmlu_redux",
        "knowledge",
        "choice",
        Hub("edinburgh-dawg/mmlu-redux-2.0", configs=EVERY_CONFIG, read=mmlu_redux),
    ),
    DataSet(
        "medmcqa",
        "knowledge",
        "choice",
        Hub(
            "openlifescienceai/medmcqa",
            test="validation",
            dev="train",
            read=option_columns(("opa", "opb", "opc", "opd"), "cop", topic="subject_name"),
        ),
    ),
    DataSet("popqa", "knowledge", "text", Hub("akariasai/PopQA", read=popqa), read=popqa),
    DataSet(
        "truthfulqa",
        "knowledge",
        "choice",
        Hub(
            "truthfulqa/truthful_qa",
            test="validation",
            configs=("multiple_choice",),
            read=truthfulqa,
            shuffle=True,
        ),
        shuffle=True,
    ),
    DataSet("humaneval", "coding", "code", Hub("openai/openai_humaneval", read=humaneval), read=humaneval),
    DataSet(
        "mbpp",
        "coding",
        "code",
        Hub("google-research-datasets/mbpp", dev="train", configs=("full",), read=mbpp),
        read=mbpp,
    ),
    _gpqa("gpqa_main"),
    _gpqa("gpqa_diamond"),
    _gpqa("gpqa_extended"),
    DataSet(
        "chembench",
        "science",
        "choice",
        Hub("jablonkagroup/ChemBench", test="train", configs=EVERY_CONFIG, read=chembench, shuffle=True),
        read=renamed(topic="subfield"),
    ),
    DataSet(
        "lab_bench",
        "science",
        "choice",
        Hub("futurehouse/lab-bench", test="train", configs=LAB_BENCH_TEXTS, read=protocols, shuffle=True),
        read=renamed(topic="subtask"),
    ),
    DataSet(
        "arc_challenge",
        "science",
        "choice",
        Hub("allenai/ai2_arc", dev="validation", configs=("ARC-Challenge",), read=renamed(answer="answerKey")),
    ),
)

DATA_SETS = {data_set.name: data_set for data_set in _SETS}


def refuse_nested(sources: Iterable[str]) -> None:
    """Refuse sources that share items, as the GPQA sets do: training on one and testing on another is no test.

    `sources`: what stands under `task.source` in each task that is used together. Raises `ConfigError` naming two.
    """
    seen: dict[str, str] = {}
    for source in dict.fromkeys(sources):
        known = DATA_SETS.get(source.removeprefix("moco:"))
        family = known.nested if known else ""
        if family and family in seen:
            raise ConfigError(
                f"task.source: {seen[family]} and {source} hold the same items (the {family} sets are nested); use one"
            )
        if family:
            seen[family] = source
