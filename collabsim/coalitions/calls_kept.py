"""How many calls and tokens each run took, read back from a run folder.

In: the folder's SQLite file, of a run that is finished, stopped or going on. Out: one entry for every run. Calls count
whether or not their generations were there already: this is what a run takes by itself, not what a sweep paid. Nothing is
written.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from collabsim.coalitions.answers_kept import kept

# Places 5 and 6 of a call are its tokens: see `outcomes._call_fields`.
_RUNS = """
SELECT kind, coalition, item, n_calls,
       (SELECT coalesce(sum(json_extract(value, '$[5]')), 0) FROM json_each(run.calls)),
       (SELECT coalesce(sum(json_extract(value, '$[6]')), 0) FROM json_each(run.calls))
FROM run ORDER BY item, kind, coalition
"""


class KeptCalls(NamedTuple):
    """What one run took."""

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
    with kept(path) as file:
        yield from map(KeptCalls._make, file.execute(_RUNS))
