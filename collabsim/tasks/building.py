"""From a record to an item: identity, prompt, kind and scorer, and the test that the gold scores.

In: records. Out: `Item`s. An item whose gold does not score 1 in the form that the prompt asks for, or whose scorer gives
anything for an empty reply, is `Unusable`. A program is only read here, for running thousands would take minutes; see
`reference_runs.py`. Left out on purpose: which items make a task; see `task.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from collabsim.arguments import checked
from collabsim.errors import DataError
from collabsim.item import Item, ItemView
from collabsim.request import Message
from collabsim.scorers import AnswerScorer, inferred_kind, scorer_for
from collabsim.seeds import digest
from collabsim.tasks.prompts import task_prompt
from collabsim.tasks.record import Record, Unusable, read_record


def kind_of(record: Record) -> str:
    """The kind that a record names, or the one that its options, fields and golds show."""
    golds = (record.gold,) if isinstance(record.gold, str) else record.gold
    return record.kind or inferred_kind(golds, record.choices, record.fields)


def build_item(
    record: Record,
    *,
    kind: str | None = None,
    prompt: str | None = None,
    scorer: AnswerScorer | None = None,
    tested: bool = True,
) -> Item:
    """An item, by default a tested one.

    Raises `Unusable` when its gold cannot be scored, `ConfigError` for an unknown kind.
    """
    scorer = scorer or scorer_for(kind or kind_of(record))
    choices = dict(record.choices) if scorer.has_options else {}
    gold = record.gold if choices or not record.choices else _option_texts(record)
    judged_by = [record.fields[name] for name in scorer.judged_by if record.fields.get(name)]
    item_id = digest([record.question, choices, scorer.gold_content(gold), *judged_by])[:16]
    asked = task_prompt(record.question, choices, scorer.ending(record.fields), prompt)
    item = Item(
        id=item_id,
        question=record.question,
        gold=gold,
        view=ItemView(item_id, (Message("user", asked),), choices, scorer.kind),
        scorer=scorer,
        topic=record.topic,
        difficulty=record.difficulty,
        chance=scorer.chance(gold, choices, record.chance),
        extra=record.fields,
    )
    if defect := scorer.defect(item):
        raise Unusable(defect)
    if tested and not scorer.waits:
        _self_test(item, prompt)
    return item


def _option_texts(record: Record) -> str | tuple[str, ...]:
    """Golds for a kind without options: the texts of the right ones."""
    letters = (record.gold,) if isinstance(record.gold, str) else record.gold
    texts = tuple(record.choices[letter] for letter in letters)
    return texts[0] if len(texts) == 1 else texts


def _self_test(item: Item, prompt: str | None) -> None:
    """Raises `Unusable` unless the gold in the asked form is right and an empty reply is worth nothing."""
    scorer = item.scorer
    if scorer.score(scorer.asked_form(item.gold_text, prompt), item).score != 1.0:
        raise Unusable("unscorable_gold")
    if scorer.score("", item).score != 0.0:
        raise Unusable("empty_reply_scores")


@checked(answer=None, choices=None)
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
