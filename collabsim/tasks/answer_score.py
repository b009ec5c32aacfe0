"""One reply scored outside a run.

In: a kind of answer, a reply, its gold, and what the kind needs besides (options, or tests and the name they call). Out: the
`Score` that a sweep, a vote or a reward would see, by the same scorer object. Left out on purpose: prompts, and data sets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from collabsim.errors import DataError
from collabsim.item import Item, ItemView, Score
from collabsim.scorers.reading.scoring import AnswerScorer, accepted_golds
from collabsim.seeds import digest
from collabsim.tasks.building import scorer_for
from collabsim.tasks.record import Unusable, read_record

Gold = str | int | float | bool | Sequence[str | int | float | bool] | None

_ROLES = {"question": "question", "gold": "gold", "choices": "choices"}


def score_answer(
    kind: str,
    response: str,
    gold: Gold,
    options: Mapping[str, str] | Sequence[str] | None = None,
    tests: str | Sequence[str] | None = None,
    entry_point: str | None = None,
    finish: str = "stop",
) -> Score:
    """The score of one reply.

    `kind`: number, expression, exact, choice, text or code. `gold`: the right answer, or several of which any is
    accepted; for a choice a letter or key of the options, an option's text, or its place from 0 in a list. `tests` and
    `entry_point` (code): what is run after the reply's program, and the function that it calls. `finish`: why the reply
    ended; a cut one counts only what it declared.

    Raises `ConfigError` for an unknown kind, and `DataError` for a gold that cannot be scored: null, without options, no
    answer of its kind. A failure of scoring itself is no exception but a score of None.
    """
    scorer = scorer_for(kind)
    for name, value in (("response", response), ("finish", finish)):
        if not isinstance(value, str):
            raise DataError(f"{name}: expected text, got {value!r}")
    if isinstance(gold, Mapping):
        raise DataError(f"gold: expected an answer or a list of answers, got {gold!r}")
    return scorer.score(response, _item(kind, gold, options, {"tests": tests, "entry_point": entry_point}), finish)


def _item(kind: str, gold: Gold, options: Mapping[str, str] | Sequence[str] | None, code: dict[str, Any]) -> Item:
    if kind == "code" and gold is None:
        gold = ""
    if kind == "code" and not code["tests"]:
        raise DataError("tests: expected the tests of a program, got none; kind code needs tests and entry_point")
    if kind == "choice" and not options:
        raise DataError("options: expected a mapping or a list of texts, got none; kind choice needs options")
    row = {"question": "?", "gold": gold, "choices": options if kind == "choice" else None}
    accepted, choices = _read(row) if kind != "code" else (gold, {})
    item_id = digest([kind, list(accepted) if isinstance(accepted, tuple) else accepted, dict(choices), code])[:16]
    view = ItemView(item_id, (), choices, kind)
    item = Item(item_id, "", accepted, view, scorer_for(kind), extra={k: v for k, v in code.items() if v is not None})
    scorer = item.scorer
    if kind == "code":  # its tests are what counts; a reference solution may be missing
        return item
    if isinstance(scorer, AnswerScorer) and all(scorer.gold(text, view) is None for text in accepted_golds(item)):
        raise DataError(f"gold: expected an answer of kind {kind}, got {gold!r}")
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
