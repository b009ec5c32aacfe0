"""Reads the number of calls and tokens of each run back from a run folder.

In: the folder's SQLite file, of a run that is finished, stopped or going on. Out: one entry for every run. Calls count
whether or not their generations were in the store: the numbers are those of a run by itself, not the cost of the sweep.
Nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from collabsim.coalitions.answers_kept import open_outcomes

# Places 5 and 6 of a call are its tokens: see `outcomes._call_fields`.
_RUNS = """
SELECT kind, coalition, item, n_calls,
       (SELECT coalesce(sum(json_extract(value, '$[5]')), 0) FROM json_each(run.calls)),
       (SELECT coalesce(sum(json_extract(value, '$[6]')), 0) FROM json_each(run.calls))
FROM run ORDER BY item, kind, coalition
"""


class KeptCalls(NamedTuple):
    """Calls and tokens of one run."""

    kind: str
    """`alone` for a seat's own answer outside the protocol, else `coalition`."""
    who: str
    """The seat, or the present players joined by `+`."""
    item: str
    calls: int
    prompt_tokens: int
    completion_tokens: int

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.prompt_tokens + self.completion_tokens


def read_calls(path: Path) -> Iterator[KeptCalls]:
    """The calls of all runs of a run folder's `outcomes.sqlite`, by item.

    Raises `ConfigError` when there is none, `StoreError` when it cannot be read.
    """
    with open_outcomes(path) as file:
        yield from map(KeptCalls._make, file.execute(_RUNS))
