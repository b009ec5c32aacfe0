"""The generation store: never generate the same thing twice.

In: a model and a `Request`. Out: its `Reply`, from memory, from the file, from a generation in flight, or generated
now and committed. One store may be used from any number of threads and event loops at once, and one file by several
processes. Left out on purpose: failures (never kept, the next call tries again), expiry, and retries (each model
has its own).
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from collabsim.arguments import check_kind
from collabsim.episode import Reply
from collabsim.errors import CallError, StoreError
from collabsim.identity import identity_of, revision_of
from collabsim.models.chat.reply import reply_of
from collabsim.paths import user_path
from collabsim.request import Request
from collabsim.store.codec import decode, encode
from collabsim.store.flight import SingleFlight
from collabsim.store.journal import Journal
from collabsim.store.keys import request_key
from collabsim.store.memory import Memory, Unnamed, UnnamedModels
from collabsim.store.sqlite import Schema

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

SCHEMA = Schema(
    name="generation store",
    application_id=0x434F4C47,  # "COLG"
    steps=(("CREATE TABLE generations (key TEXT PRIMARY KEY, reply BLOB NOT NULL)",),),
)
MEMORY_BYTES = 64 * 2**20
"""Encoded size of the replies held in memory besides the file."""
BATCH = 500
"""Keys in one query, below SQLite's smallest limit on parameters (999)."""


class Fetched(NamedTuple):
    """A reply, the key it is kept under, and whether it was there already or in flight for somebody else."""

    reply: Reply
    key: str
    reused: bool


class _Ask(NamedTuple):
    """One generation to be made."""

    model: BaseChatModel
    request: Request
    revision: str
    """As it was when the key was made."""
    key: str
    unnamed: Unnamed | None
    """The entry of a model without identity."""


class GenerationStore:
    """Replies of models by content key, in memory and in one SQLite file.

    `path` None means in memory only. Models without identity are kept in memory only too, each object by itself. A
    context manager. Raises `StoreError` when the file cannot be used.
    """

    def __init__(self, path: Path | str | None = None) -> None:
        check_kind("path", path, Path | str | None)
        self.generated = 0
        """Replies that models made for this store, bypassed ones included."""
        self.reused = 0
        """Replies that were there already, or came from a generation in flight."""
        self._journal = None if path is None else _open(user_path(path, "store"))
        self._memory = Memory(MEMORY_BYTES)
        self._unnamed = UnnamedModels(self._memory)
        self._flights: SingleFlight[tuple[Reply, bool]] = SingleFlight()
        self._lock = threading.Lock()
        self._pid = os.getpid()

    async def fetch(self, model: BaseChatModel, request: Request, *, bypass: bool = False) -> Fetched:
        """The reply of `model` to `request`; a new one is returned once it is committed.

        Equal requests in flight share one generation, which runs on the background loop, in a context of its own,
        for as long as anybody waits for it. `bypass` neither reads nor writes (a learner in training). Raises what
        the model raises, to all who wait; `CallError` when the revision of its weights changed during the call;
        `StoreError` when the reply cannot be committed.
        """
        ask = self._ask(model, request)
        if bypass:
            (reply, _), _ = await self._flights.share(object(), lambda: self._produce(ask, keep=False))
            return Fetched(reply, ask.key, False)
        stored = self._reuse(ask.key) or self._reuse_from_disk(ask)
        if stored is not None:
            return Fetched(stored, ask.key, True)
        (reply, generated), leads = await self._flights.share(ask.key, lambda: self._produce(ask, keep=True))
        if not leads:
            with self._lock:
                self.reused += 1
        return Fetched(reply, ask.key, not (leads and generated))

    def get(self, key: str) -> Reply | None:
        """The reply kept under a key, or None. Counts nothing."""
        with self._lock:
            reply = self._memory.get(key)
        return reply or self._on_disk(key)

    def get_encoded(self, key: str) -> bytes | None:
        """The reply kept under a key as `codec.encode` writes it, or None."""
        return next((encoded for _, encoded in self.export([key])), None)

    def export(self, keys: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """The keys that the store has, each once, with their encoded replies; for self-contained copies."""
        distinct = list(dict.fromkeys(keys))
        for start in range(0, len(distinct), BATCH):
            batch = distinct[start : start + BATCH]
            rows = self._rows(batch)
            yield from rows
            for key in set(batch).difference(key for key, _ in rows):
                with self._lock:
                    reply = self._memory.get(key)
                if reply is not None:
                    yield key, encode(reply)

    def close(self) -> None:
        """Close the file. Safe to call again; generations still in flight fail."""
        if self._journal is not None:
            self._journal.close()

    def __enter__(self) -> GenerationStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, model: BaseChatModel, request: Request) -> _Ask:
        if os.getpid() != self._pid:
            raise StoreError(
                "this generation store was opened before the process was forked off; open one in the child"
            )
        identity, revision, unnamed = identity_of(model), revision_of(model), None
        if identity is None:
            with self._lock:
                unnamed = self._unnamed.of(model)
            identity = unnamed.name
        return _Ask(model, request, revision, request_key(identity, revision, request), unnamed)

    def _reuse(self, key: str) -> Reply | None:
        with self._lock:
            reply = self._memory.get(key)
            if reply is not None:
                self.reused += 1
        return reply

    def _reuse_from_disk(self, ask: _Ask) -> Reply | None:
        if ask.unnamed is not None or self._flights.under_way(ask.key):
            return None
        reply = self._on_disk(ask.key)
        if reply is not None:
            with self._lock:
                self.reused += 1
        return reply

    async def _produce(self, ask: _Ask, *, keep: bool) -> tuple[Reply, bool]:
        """The reply, and whether it was made here."""
        if not keep:
            return await self._generate(ask), True
        stored = self._reuse(ask.key)  # an earlier flight may have landed since the asker looked
        if stored is not None:
            return stored, False
        reply = await self._generate(ask)
        if self._journal is not None and ask.unnamed is None:
            return await self._commit(self._journal, ask.key, reply), True
        with self._lock:
            self._memory.keep(ask.key, reply)
            if ask.unnamed is not None:
                ask.unnamed.keys.add(ask.key)
        return reply, True

    async def _generate(self, ask: _Ask) -> Reply:
        reply = await reply_of(ask.model, ask.request)
        revision = revision_of(ask.model)
        if revision != ask.revision:
            raise CallError(
                f"expected one revision of the weights throughout a call, got {ask.revision} at its start and "
                f"{revision} at its end; push weights when no call is under way, then ask again"
            )
        with self._lock:
            self.generated += 1
        return reply

    async def _commit(self, journal: Journal, key: str, reply: Reply) -> Reply:
        """The reply that is in the file from now on: ours, or that of a process that was faster."""
        encoded = encode(reply)
        insert = "INSERT OR IGNORE INTO generations VALUES (?, ?)"
        if not await asyncio.wrap_future(journal.append(insert, (key, encoded))):
            return self._on_disk(key) or reply
        with self._lock:
            self._memory.cache(key, reply, len(encoded))
        return reply

    def _on_disk(self, key: str) -> Reply | None:
        rows = self._rows([key])
        if not rows:
            return None
        reply = decode(rows[0][1])
        with self._lock:
            self._memory.cache(key, reply, len(rows[0][1]))
        return reply

    def _rows(self, keys: list[str]) -> list[tuple[str, bytes]]:
        if self._journal is None:
            return []
        marks = ",".join("?" * len(keys))
        rows = self._journal.read(f"SELECT key, reply FROM generations WHERE key IN ({marks})", keys)
        return [(key, encoded) for key, encoded in rows]


def default_path() -> Path:
    """The generation store of this user: `$COLLABSIM_STORE`, else a file in `$XDG_CACHE_HOME` or `~/.cache`.

    Raises `StoreError` when the user has no home folder, `ConfigError` when the variable names one that is not there.
    """
    named = os.environ.get("COLLABSIM_STORE")
    return user_path(named, "COLLABSIM_STORE") if named else _in_cache_folder()


def _in_cache_folder() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not cache.is_absolute():  # unset, or to be ignored by the XDG standard
        try:
            cache = Path.home() / ".cache"
        except RuntimeError as error:
            raise StoreError(
                "this user has no home folder to keep generations in; name a file with `store:`"
            ) from error
    return cache / "collabsim" / "generations.sqlite"


def _open(path: Path) -> Journal:
    """The journal at `path`. Our folder in the user's cache is made; any other must exist (it may be misspelt)."""
    if path == default_path() and not os.environ.get("COLLABSIM_STORE"):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"cannot make the folder {path.parent}: {error.strerror}; name a file with `store:`"
            ) from error
    return Journal(path, SCHEMA)
