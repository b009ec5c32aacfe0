"""The outcomes of a run folder: one SQLite file with every finished run and one copy of every generation it used.

In: episodes. Out: the runs of earlier sessions, so that a sweep goes on where it stopped. One row per (kind, coalition,
item, replica); the last complete one wins. Coalitions are kept by names, never as bare masks. The folder is
self-contained: a call points to its generation by key, and the generation is in the same file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from collabsim.episode import Call, Episode
from collabsim.item import Score, Verdict
from collabsim.seeds import digest
from collabsim.store import GenerationStore
from collabsim.store.journal import Journal, Statement
from collabsim.store.sqlite import Schema

Kind = Literal["coalition", "alone"]

SCHEMA = Schema(
    name="run folder",
    application_id=0x636F6C52,
    steps=(
        (
            """CREATE TABLE run (
                 kind TEXT NOT NULL, coalition TEXT NOT NULL, item TEXT NOT NULL, replica INTEGER NOT NULL,
                 outcome REAL, verdict TEXT, final TEXT NOT NULL, n_calls INTEGER NOT NULL, calls TEXT NOT NULL,
                 error TEXT, seconds REAL NOT NULL,
                 PRIMARY KEY (kind, coalition, item, replica)) WITHOUT ROWID""",
            # `made`: generated for this run folder, not found in the store
            """CREATE TABLE generation (
                 key TEXT PRIMARY KEY, reply BLOB NOT NULL, made INTEGER NOT NULL,
                 prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL) WITHOUT ROWID""",
            "CREATE TABLE text (id TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID",
        ),
        (
            # why a text scored as it did: one row for all runs of an item that ended with it
            """CREATE TABLE judgement (
                 item TEXT NOT NULL, text TEXT NOT NULL, finish TEXT NOT NULL,
                 score REAL, verdict TEXT NOT NULL, extracted TEXT, reason TEXT NOT NULL,
                 PRIMARY KEY (item, text, finish)) WITHOUT ROWID""",
        ),
    ),
)
KEEP_GENERATION = (
    "INSERT INTO generation VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET made = max(made, excluded.made)"
)

# Calls without a key (see `_call_fields`): they are in no store, so they count with the run that made them.
UNPAIRED_CALLS = """
    SELECT count(*), coalesce(sum(json_extract(call.value, '$[5]')), 0), coalesce(sum(json_extract(call.value, '$[6]')), 0)
    FROM run, json_each(run.calls) AS call
    WHERE json_extract(call.value, '$[4]') = '' AND json_extract(call.value, '$[7]') != 'overflow'"""


class RecordedRun(NamedTuple):
    """One finished run as it is read back."""

    kind: Kind
    coalition: str
    """Player names joined by `+`, in the pool's order."""
    item: str
    outcome: float | None
    verdict: Verdict | None
    error: dict[str, str] | None
    cut: bool = False
    """Whether a text of the final output ended at its token limit."""


def was_cut(episode: Episode) -> bool:
    """Whether a text of the final output ended at its token limit."""
    return any(output.finish == "length" for output in episode.final)


@dataclass(frozen=True, slots=True)
class Cost:
    """Costs of a sweep. Tokens are those of new generations, not of reused ones."""

    runs: int = 0
    """Runs of the system; the seats' own answers outside it are not counted here, but their calls are below."""
    calls: int = 0
    generated: int = 0
    """Generations made by recorded runs. A reply that a killed session generated but did not record is `reused` later."""
    reused: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def plus(self, kind: Kind, episode: Episode) -> Cost:
        """The cost with one more episode."""
        generated = [call for call in episode.calls if not call.reused]
        return Cost(
            runs=self.runs + (kind == "coalition"),
            calls=self.calls + len(episode.calls),
            generated=self.generated + len(generated),
            reused=self.reused + len(episode.calls) - len(generated),
            prompt_tokens=self.prompt_tokens + sum(call.usage.prompt_tokens for call in generated),
            completion_tokens=self.completion_tokens + sum(call.usage.completion_tokens for call in generated),
        )


class OutcomeLog:
    """Writes episodes of a sweep and reads them back; `path` None keeps nothing."""

    def __init__(self, path: Path | None, store: GenerationStore) -> None:
        self._journal = Journal(path, SCHEMA) if path is not None else None
        self._store = store
        self._written: set[str] = set()
        """Keys of generations and texts that this session has already written."""
        self._last: Future[int] | None = None

    def rows(self) -> Iterator[RecordedRun]:
        """Every recorded run, failed ones included."""
        if self._journal is None:
            return
        cut = """final LIKE '%"length"]%'"""  # ids are hexadecimal, so only a finish can match
        for row in self._journal.read(f"SELECT kind, coalition, item, outcome, verdict, error, {cut} FROM run"):
            kind, coalition, item, outcome, verdict, error, was_cut = row
            yield RecordedRun(
                kind, coalition, item, outcome, verdict, json.loads(error) if error else None, bool(was_cut)
            )

    def record(self, kind: Kind, coalition: str, episode: Episode) -> None:
        """Queue an episode, with the generations and texts that are not in the file yet."""
        if self._journal is None:
            return
        self._check_last()
        statements = list(self._new_generations(episode.calls))
        final = []
        for place, output in enumerate(episode.final):
            text_id = digest(output.text)[:24]
            if text_id not in self._written:
                self._written.add(text_id)
                statements.append(("INSERT OR IGNORE INTO text VALUES (?, ?)", (text_id, output.text)))
            final.append([text_id, output.weight, output.finish])
            if place < len(episode.scores):
                statements += self._new_judgement((episode.item_id, text_id, output.finish), episode.scores[place])
        error = episode.error and {
            "kind": episode.error.kind,
            "message": episode.error.message,
            "where": episode.error.where,
        }
        values = (
            kind,
            coalition,
            episode.item_id,
            episode.replica,
            episode.outcome,
            episode.verdict,
            _json(final),
            len(episode.calls),
            _json([_call_fields(call) for call in episode.calls]),
            _json(error) if error else None,
            round(episode.seconds, 6),
        )
        statements.append(("INSERT OR REPLACE INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values))
        self._last = self._journal.append_all(statements)

    def _new_judgement(self, key: tuple[str, str, str], score: Score) -> list[Statement]:
        if "\n".join(key) in self._written:
            return []
        self._written.add("\n".join(key))
        judgement = (score.score, score.verdict, score.extracted, score.reason)
        return [("INSERT OR REPLACE INTO judgement VALUES (?, ?, ?, ?, ?, ?, ?)", (*key, *judgement))]

    def _new_generations(self, calls: tuple[Call, ...]) -> Iterator[Statement]:
        for call in calls:
            # A run that waited for another's generation may be recorded before the run that made it.
            if call.key and (call.key not in self._written or not call.reused):
                self._written.add(call.key)
                usage = (call.usage.prompt_tokens, call.usage.completion_tokens)
                reply = self._store.get_encoded(call.key)
                yield KEEP_GENERATION, (call.key, reply, int(not call.reused), *usage)

    def _check_last(self) -> None:
        """Raise the failure of an earlier write as soon as it is known: on a full disk a sweep must not go on."""
        if self._last is not None and self._last.done():
            self._last.result()

    def cost(self) -> Cost | None:
        """Costs of all sessions of this run folder; None when nothing is kept."""
        if self._journal is None:
            return None
        ((runs,),) = self._journal.read("SELECT count(*) FROM run WHERE kind = 'coalition'")
        ((calls,),) = self._journal.read("SELECT coalesce(sum(n_calls), 0) FROM run")
        ((generated, prompt, completion),) = self._journal.read(
            "SELECT count(*), coalesce(sum(prompt_tokens), 0), coalesce(sum(completion_tokens), 0) "
            "FROM generation WHERE made"
        )
        ((unpaired, unpaired_prompt, unpaired_completion),) = self._journal.read(UNPAIRED_CALLS)
        generated, prompt, completion = generated + unpaired, prompt + unpaired_prompt, completion + unpaired_completion
        return Cost(runs, calls, generated, max(calls - generated, 0), prompt, completion)

    def unpaired(self) -> int:
        """Recorded calls that were not made through a seat: see `Call.paired`."""
        if self._journal is None:
            return 0
        ((count, _, _),) = self._journal.read(UNPAIRED_CALLS)
        return int(count)

    def flush(self) -> None:
        """Wait until everything is in the file. Raises `StoreError` when something could not be written."""
        if self._journal is not None:
            self._journal.flush()

    def close(self) -> None:
        """Write what is queued and close the file."""
        if self._journal is not None:
            self._journal.close()


def _call_fields(call: Call) -> list[Any]:
    return [
        call.seat,
        call.node,
        call.draw,
        call.revision,
        call.key,
        call.usage.prompt_tokens,
        call.usage.completion_tokens,
        call.finish,
        round(call.seconds, 4),
        int(call.reused),
    ]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
