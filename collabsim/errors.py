"""All errors that are addressed to the user, one class for each boundary they come from.

One base class. Each message says what was expected, what came, and what to do. The command line prints any of these as
one line and exits with code 2; everything else is a bug and keeps its traceback. A failed *run* never raises out of a
sweep: it is recorded as a `RunError` (see `episode.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class CollabsimError(Exception):
    """Base of all errors that are addressed to the user."""


class ConfigError(CollabsimError):
    """A config, flag or argument that cannot be meant: unknown key, wrong type, unknown seat, impossible number."""


class PrerequisiteError(CollabsimError):
    """A package, key, server or model file that this machine lacks. The message says how to get it."""


class ProtocolError(CollabsimError):
    """A protocol that breaks its contract: wrong return type, no final output, a pool it declared it cannot take."""


class DataError(CollabsimError):
    """A data set that cannot be read, is empty after filters, or whose splits overlap."""


class ScoringError(CollabsimError):
    """Answers could not be compared because of the machine, not the answers: no scoring process could be started."""


class StoreError(CollabsimError):
    """The generation store or a run folder cannot be read or written (full disk, no permission, foreign file)."""


class MissingOutcomesError(CollabsimError):
    """Values cannot be computed: runs of the game table failed or have not been made yet."""


class CallError(CollabsimError):
    """A model call failed for a reason that is not the model's answer. Fails its run; never cached; retried on resume."""


class ContextOverflowError(CallError):
    """A prompt plus the room for its reply does not fit the model's context window."""


class TrainingError(CollabsimError):
    """Training cannot go on: a loss or a gradient that is not finite, or a step in which every run failed."""


def nearest(word: object, known: Iterable[object]) -> str:
    """` (did you mean 'x'?)` for the closest known word, or nothing: the end of a message about an unknown name."""
    close = get_close_matches(str(word), [str(name) for name in known], n=1)
    return f" (did you mean {close[0]!r}?)" if close and close[0] != word else ""
