"""The registry of kinds of answers.

In: entry points of the group `collabsim.kinds`: the name of a kind, and its scorer, a subclass of `AnswerScorer`. Out: one
scorer object a kind, loaded on first use, so that no kind costs what another needs. Left out on purpose: the kind
`verifier`, whose scorer comes with the source that has the verifier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint
from typing import Any

from collabsim.errors import ConfigError, PrerequisiteError, nearest
from collabsim.plugins import load, registered
from collabsim.scorers.reading.scoring import AnswerScorer

GROUP = "collabsim.kinds"

INFERRED = ("choice", "code", "number", "expression", "exact")
"""Kinds that a record may have without naming one, in the order in which they are tried. All others are named, so that
installing a package changes no task."""


def registered_kinds() -> dict[str, EntryPoint]:
    """Entry points of all installed packages that offer kinds of answers, by name."""
    return registered(GROUP)


@cache
def scorer_for(kind: str) -> AnswerScorer:
    """The scorer of a kind, one per process.

    Raises `ConfigError` for a kind that does not exist, naming the nearest, and for one whose entry point is no such scorer.
    """
    known = registered_kinds()
    if kind not in known:
        names = ", ".join(known) or "none, since this installation is older than the code; run `make setup` again"
        raise ConfigError(f"unknown kind of answer {kind!r}{nearest(kind, known)}; known: {names}")
    origin = known[kind].value
    try:
        scorer = load(known[kind], "kind of answer")
    except PrerequisiteError as error:
        raise ConfigError(str(error)) from error
    if not (isinstance(scorer, type) and issubclass(scorer, AnswerScorer) and scorer.kind == kind):
        raise ConfigError(
            f"kind of answer {kind!r}: expected {origin!r} to be a subclass of AnswerScorer with kind = {kind!r}, got "
            f"{scorer!r}; correct its package"
        )
    return scorer()


def inferred_kind(golds: Sequence[str], choices: Mapping[str, str], fields: Mapping[str, Any]) -> str:
    """The kind that a record without one shows: options, tests, plain numbers, mathematics, or other text."""
    return next(kind for kind in INFERRED if scorer_for(kind).shown_by(golds, choices, fields))
