"""One reply scored outside a run.

In: a kind of answer, a reply, its gold, and what the kind needs besides (options, tests, other fields). Out: the `Score` that
a sweep, a vote or a reward would see, by the same scorer object. Left out on purpose: prompts, and data sets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from collabsim.arguments import checked
from collabsim.errors import DataError
from collabsim.item import Item, ItemView, Score
from collabsim.scorers import AnswerScorer, accepted_golds, scorer_for
from collabsim.seeds import digest
from collabsim.tasks.record import Unusable, read_record

Gold = str | int | float | bool | Sequence[str | int | float | bool] | None

_ROLES = {"question": "question", "gold": "gold", "choices": "choices"}


@checked(response=None, gold=None, options=None, tests=None, entry_point=None, finish=None, fields=None)
def score_answer(
    kind: str,
    response: str,
    gold: Gold,
    options: Mapping[str, str] | Sequence[str] | None = None,
    tests: str | Sequence[str] | None = None,
    entry_point: str | None = None,
    finish: str = "stop",
    fields: Mapping[str, Any] | None = None,
) -> Score:
    """The score of one reply.

    `kind`: number, expression, exact, choice, text, code, or one that another package registers. `gold`: the right answer,
    or several of which any is accepted; for a choice a letter or key of the options, an option's text, or its place from 0
    in a list. `tests` and `entry_point` (code): what is run after the reply's program, and the function that it calls.
    `finish`: why the reply ended; a cut one counts only what it declared. `fields`: what else the kind reads from a row.

    Raises `ConfigError` for an unknown kind, and `DataError` for a gold that cannot be scored: null, without options, no
    answer of its kind. A failure of scoring itself is no exception but a score of None.
    """
    scorer = scorer_for(kind)
    for name, value in (("response", response), ("finish", finish)):
        if not isinstance(value, str):
            raise DataError(f"{name}: expected text, got {value!r}")
    if isinstance(gold, Mapping):
        raise DataError(f"gold: expected an answer or a list of answers, got {gold!r}")
    row_fields = {"tests": tests, "entry_point": entry_point, **(fields or {})}
    return scorer.score(response, _item(scorer, gold, options, row_fields), finish)


def _item(
    scorer: AnswerScorer, gold: Gold, options: Mapping[str, str] | Sequence[str] | None, fields: dict[str, Any]
) -> Item:
    if lack := scorer.missing(options, fields):
        raise DataError(lack)
    accepted: Any = "" if gold is None else gold
    choices: Mapping[str, str] = {}
    if not scorer.judged_by:
        accepted, choices = _read({"question": "?", "gold": gold, "choices": options if scorer.has_options else None})
    golds = list(accepted) if isinstance(accepted, tuple) else accepted
    item_id = digest([scorer.kind, golds, dict(choices), fields])[:16]
    view = ItemView(item_id, (), choices, scorer.kind)
    item = Item(item_id, "", accepted, view, scorer, extra={k: v for k, v in fields.items() if v is not None})
    if scorer.judged_by:  # these count, and a reference answer may be missing
        return item
    if all(scorer.gold(text, view) is None for text in accepted_golds(item)):
        raise DataError(f"gold: expected an answer of kind {scorer.kind}, got {gold!r}")
    return item


_DEFECTS = {
    "null_gold": "gold: expected an answer, got null or nothing",
    "unreadable_options": "options: expected 2 to 26 of them, as a mapping or a list of texts",
    "unreachable_gold": "gold: it is none of the options",
}


def _read(row: dict[str, Any]) -> tuple[Any, Mapping[str, str]]:
    """Accepted golds and lettered options of a row, mended as rows of data sets are."""
    try:
        record = read_record(row, _ROLES)
    except Unusable as defect:
        raise DataError(_DEFECTS.get(str(defect), str(defect)) + f"; got {row['gold']!r}") from None
    return record.gold, record.choices
