"""An application on seats, as a file that a config names."""

from __future__ import annotations

from foreign.applications import ABSENT, first_note, map_reduce, question_of, report_of  # noqa: F401

app = map_reduce().compile()
