"""Checks that members have what a protocol needs, before anything is loaded.

In: a system. Out: nothing, or the error that its first run would raise: models without next-token distributions or on
an engine that hides them, vocabularies in which an id means two tokens, architectures whose weights cannot be merged.
Configs and tokenizers suffice; no weights are read. Left out on purpose: dev items (see `fitting.py`), and the
capabilities of models other than `LocalModel`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collabsim.errors import CollabsimError

if TYPE_CHECKING:
    from collabsim.models.local.local_model import LocalModel
    from collabsim.pool import Pool
    from collabsim.system.system import System


def check_needs(system: System) -> None:
    """Raises `ProtocolError` or `ConfigError`, naming the seats, when members cannot do together what the protocol wants.

    A pool of one is never refused: a single member answers alone.
    """
    needs = system.protocol.needs
    if len(system.pool) < 2:
        return
    if "same_architecture" in needs:
        _check_merges(system)
    elif "logits" in needs:
        _check_logits(system.pool, alike="same_tokenizer" in needs)


def _check_merges(system: System) -> None:
    from collabsim.models.merging import check_alike, check_kinds
    from collabsim.nodes.asking_merged import base_helper

    members: list[Any] = [seat.model for seat in system.pool.values()]
    base: Any = base_helper(system.helpers, system.options["base"]).model if "base" in system.options else members[0]
    if check_kinds([*members, base]):
        check_alike([member.folder for member in members], base.folder)


def _check_logits(pool: Pool, *, alike: bool) -> None:
    from collabsim.models.engines.logits import logit_model
    from collabsim.models.local.local_model import LocalModel

    local: dict[str, LocalModel] = {}
    for name, seat in pool.items():
        if isinstance(seat.model, LocalModel):
            local[name] = seat.model
            seat.model.check_shows_logits()
        elif not callable(getattr(seat.model, "logit_model", None)):
            logit_model(seat.model)  # raises the error that says why
    if alike:
        _check_tokens(local)


def _check_tokens(models: dict[str, LocalModel]) -> None:
    """Every tokenizer against that of the first seat."""
    from collabsim.models.engines.logits import check_same_tokens
    from collabsim.models.merging import token_table

    folders = {name: model.folder for name, model in models.items()}
    first = next(iter(folders), "")
    others = {name: folder for name, folder in folders.items() if folder.tokenizer != folders[first].tokenizer}
    expected = token_table(folders[first]) if others else {}
    for name, folder in others.items():
        try:
            check_same_tokens(expected, token_table(folder))
        except CollabsimError as error:
            raise type(error)(f"seats {first!r} and {name!r}: {error}") from None
