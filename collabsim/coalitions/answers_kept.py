"""Reads the judgement of every answer back from a run folder.

In: the folder's SQLite file, of a run that is finished, stopped or going on. Out: one entry for every final text of every
run, with the judgement that was made of it then. Nothing is scored again and nothing is written.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from collabsim.errors import ConfigError, StoreError

_RUNS = """
SELECT run.kind, run.coalition, run.item, json_extract(value, '$[1]'), json_extract(value, '$[2]'), text.text,
       judgement.score, judgement.verdict, judgement.extracted, judgement.reason
FROM run, json_each(run.final)
JOIN text ON text.id = json_extract(value, '$[0]')
JOIN judgement ON judgement.item = run.item AND judgement.text = text.id
              AND judgement.finish = json_extract(value, '$[2]')
ORDER BY run.item, run.kind, run.coalition, json_each.key
"""


class KeptAnswer(NamedTuple):
    """One text of a final output, and its judgement."""

    kind: str
    """`alone` for a seat's own answer outside the protocol, else `coalition`."""
    who: str
    """The seat, or the present players joined by `+`."""
    item: str
    weight: float
    finish: str
    text: str
    score: float | None
    verdict: str
    extracted: str | None
    reason: str


def read_answers(path: Path) -> Iterator[KeptAnswer]:
    """All final texts of a run folder's `outcomes.sqlite`, by item.

    Raises `ConfigError` when there is none, or one of before judgements were kept; `StoreError` when it cannot be read.
    """
    with open_outcomes(path) as file:
        tables = {name for (name,) in file.execute("SELECT name FROM sqlite_master")}
        if "judgement" not in tables:
            raise ConfigError(f"{path} has no judgements: it is of an older collabsim; run its sweep again elsewhere")
        yield from map(KeptAnswer._make, file.execute(_RUNS))


@contextmanager
def open_outcomes(path: Path) -> Iterator[sqlite3.Connection]:
    """The SQLite file of a run folder, opened for reading only.

    Raises `ConfigError` when there is none, `StoreError` when it cannot be read, then or inside the context.
    """
    if not path.is_file():
        raise ConfigError(f"{path.parent} holds no outcomes; give the folder that a sweep named")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as file:
            yield file
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be read ({error}); restore it, or run its sweep again elsewhere") from None
