"""From a record to an item: identity, prompt, kind and scorer, and the test that the gold scores.

In: records. Out: `Item`s. An item whose gold does not score 1 in the form that the prompt asks for, or whose scorer gives
anything for an empty reply, is `Unusable`. A program is only read here, for running thousands would take minutes; see
`reference_runs.py`. Left out on purpose: which items make a task; see `task.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from collabsim.errors import ConfigError, DataError, nearest
from collabsim.item import Item, ItemView, Scorer
from collabsim.request import Message
from collabsim.scorers.choice.choice_scorer import ChoiceScorer
from collabsim.scorers.code.code_scorer import CodeScorer
from collabsim.scorers.mathematics.expression_scorer import ExpressionScorer
from collabsim.scorers.mathematics.number_scorer import NumberScorer
from collabsim.scorers.reading.numbers import whole_number
from collabsim.scorers.reading.python_syntax import syntax_tree
from collabsim.scorers.text.exact_scorer import ExactScorer
from collabsim.scorers.text.text_scorer import TextScorer
from collabsim.seeds import digest
from collabsim.tasks.prompts import asked_form, task_prompt
from collabsim.tasks.record import Record, Unusable, read_record

SCORERS = {
    scorer.kind: scorer
    for scorer in (
        NumberScorer,
        ExpressionScorer,
        ExactScorer,
        ChoiceScorer,
        TextScorer,
        CodeScorer,
    )
}

_EXPRESSION = re.compile(r"\\[a-zA-Z]|\^|^[\[(].*\d.*[\])]$|^[a-z]\s?=|^-?\d+(?:\s*,\s*-?\d+)+$")


@cache
def scorer_for(kind: str) -> Scorer:
    """The scorer of a kind, one per process. Raises `ConfigError` for a kind that does not exist."""
    if kind not in SCORERS:
        raise ConfigError(f"unknown kind of answer {kind!r}{nearest(kind, SCORERS)}; known: {', '.join(SCORERS)}")
    return SCORERS[kind]()


def kind_of(record: Record) -> str:
    """The kind a record says, or the one its gold shows: options, tests, plain numbers, mathematics, other text."""
    if record.kind:
        return record.kind
    if record.choices:
        return "choice"
    if record.fields.get("tests") or record.fields.get("cases"):
        return "code"
    golds = (record.gold,) if isinstance(record.gold, str) else record.gold
    if all(whole_number(gold, units=False) is not None for gold in golds):
        return "number"
    return "expression" if all(map(_EXPRESSION.search, golds)) else "exact"


def build_item(
    record: Record,
    *,
    kind: str | None = None,
    prompt: str | None = None,
    scorer: Scorer | None = None,
    tested: bool = True,
) -> Item:
    """An item, by default a tested one.

    Raises `Unusable` when its gold cannot be scored, `ConfigError` for an unknown kind.
    """
    kind = scorer.kind if scorer else kind or kind_of(record)
    scorer = scorer or scorer_for(kind)
    if kind == "choice" and not record.choices:
        raise Unusable("no_options")
    choices = dict(record.choices) if kind == "choice" else {}
    gold = record.gold if choices or not record.choices else _option_texts(record)
    accepted = gold if isinstance(gold, str) else gold[0] if kind == "verifier" else list(gold)
    content = [record.question, choices, accepted, *(_judged_by(record) if kind == "code" else [])]
    item_id = digest(content)[:16]
    asked = task_prompt(record.question, choices, kind, prompt, entry_point=record.fields.get("entry_point"))
    guess = (1 if isinstance(gold, str) else len(gold)) / len(choices) if choices else record.chance or 0.0
    item = Item(
        id=item_id,
        question=record.question,
        gold=gold,
        view=ItemView(item_id, (Message("user", asked),), choices, kind),
        scorer=scorer,
        topic=record.topic,
        difficulty=record.difficulty,
        chance=guess,
        extra=record.fields,
    )
    if kind == "code":
        _check_program(item)
    elif tested:
        _self_test(item, prompt)
    return item


def _option_texts(record: Record) -> str | tuple[str, ...]:
    """Golds for another kind than `choice`: the texts of the right options."""
    letters = (record.gold,) if isinstance(record.gold, str) else record.gold
    texts = tuple(record.choices[letter] for letter in letters)
    return texts[0] if len(texts) == 1 else texts


def _self_test(item: Item, prompt: str | None) -> None:
    """Raises `Unusable` unless the gold in the asked form is right and an empty reply is worth nothing."""
    scorer = item.scorer
    if scorer.score(asked_form(item.gold_text, item.view.kind, prompt), item).score != 1.0:
        raise Unusable("unscorable_gold")
    if scorer.score("", item).score != 0.0:
        raise Unusable("empty_reply_scores")


def _judged_by(record: Record) -> list[Any]:
    """What decides about a program: its tests, or the inputs and outputs of its cases."""
    return [record.fields[name] for name in ("tests", "cases") if record.fields.get(name)]


def _check_program(item: Item) -> None:
    """Raises `Unusable` unless there are cases, or tests that are Python."""
    tests = item.extra.get("tests") or ""
    if not tests and not item.extra.get("cases"):
        raise Unusable("no_tests")
    sources = [item.extra.get("setup") or "", "\n".join(tests) if isinstance(tests, list) else str(tests)]
    try:
        for source in sources:
            syntax_tree(source)
    except (SyntaxError, ValueError):
        raise Unusable("broken_tests") from None


def make_item(
    question: str,
    answer: str | float | Sequence[str],
    *,
    choices: Mapping[str, str] | Sequence[str] | None = None,
    kind: str | None = None,
    topic: str = "",
    difficulty: float | None = None,
    prompt: str | None = None,
) -> Item:
    """One item made by hand. Raises `DataError` when its answer cannot be scored in the form the prompt asks for."""
    row = {"question": question, "answer": answer, "choices": choices, "topic": topic, "difficulty": difficulty}
    roles = {
        "question": "question",
        "gold": "answer",
        "choices": "choices",
        "topic": "topic",
        "difficulty": "difficulty",
    }
    try:
        return build_item(read_record(row, roles), kind=kind, prompt=prompt)
    except Unusable as reason:
        raise DataError(f"item {question[:60]!r} cannot be used: {reason}; its answer is {answer!r}") from None
