"""`collabsim score`: JSON lines of replies and golds on standard input, JSON lines of scores on standard output.

One line out for each line in, in order, as soon as it is scored; blank lines are passed over. A line that cannot be scored
(no JSON, a field missing, a null gold) gets verdict `error`, score null and a reason that names the line and its
defect, and does not end the run; the exit code is then 1.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import typer

from collabsim.errors import DataError
from collabsim.item import Score
from collabsim.scorers import AnswerScorer, scorer_for
from collabsim.tasks import score_answer

FIELDS = ("response", "gold", "options", "finish")
"""Fields of a line that every kind may have; a scorer names the others that it reads."""


def run(kind: str) -> None:
    """Score standard input. Raises `ConfigError` for an unknown kind; exits with 1 when a line could not be scored."""
    scorer_for(kind)
    failed = False
    try:
        for score in scores(kind, sys.stdin.buffer):
            failed |= score.verdict == "error"
            sys.stdout.write(json.dumps(_shown(score)) + "\n")
            sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1) from None
    if failed:
        raise typer.Exit(1)


def scores(kind: str, lines: Iterable[bytes]) -> Iterator[Score]:
    """The score of each line, in order."""
    for place, line in enumerate(lines, start=1):
        if line.strip():
            yield _score(kind, line, place)


def _score(kind: str, line: bytes, place: int) -> Score:
    try:
        scorer = scorer_for(kind)
        row = _row(line, scorer)
        fields = {name: row.pop(name) for name in scorer.fields if name in row}
        return score_answer(kind, row.pop("response"), row.pop("gold", None), **row, fields=fields)
    except DataError as defect:
        return Score(None, "error", None, f"line {place}: {defect}")


def _row(line: bytes, scorer: AnswerScorer) -> dict[str, Any]:
    """The fields of a line that its kind reads. Raises `DataError` naming what is wrong with it."""
    try:
        row = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"not JSON in UTF-8: {error}") from None
    if not isinstance(row, dict):
        raise DataError(f"expected an object with response and gold, got {type(row).__name__}")
    if "response" not in row:
        raise DataError("no field 'response'")
    if "gold" not in row and not any(row.get(name) for name in scorer.judged_by):
        raise DataError("no field 'gold'")
    return {
        name: row[name]
        for name in (*FIELDS, *scorer.fields)
        if name in row and (row[name] is not None or name in ("response", "gold"))
    }


def _shown(score: Score) -> dict[str, Any]:
    return {"score": score.score, "verdict": score.verdict, "extracted": score.extracted, "reason": score.reason}
