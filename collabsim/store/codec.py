"""Replies as bytes and back: compact JSON in UTF-8, readable by any tool.

In and out: `Reply` and `bytes`; `decode(encode(reply)) == reply`, floats and token ids to the last bit. Fields that
have their default are left out. Left out on purpose: compression and pickling.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from collabsim.episode import Reply, Tokens, Usage
from collabsim.errors import StoreError

_DEFAULTS = {field.name: field.default for field in fields(Reply)}


def encode(reply: Reply) -> bytes:
    """The bytes of a reply. Raises `TypeError` when an engine put something else than plain numbers and text in it."""
    record = {name: getattr(reply, name) for name, default in _DEFAULTS.items() if getattr(reply, name) != default}
    if reply.usage != Usage():
        record["usage"] = (reply.usage.prompt_tokens, reply.usage.completion_tokens)
    if reply.parts:
        record["parts"] = [(part.prompt_tokens, part.completion_tokens) for part in reply.parts]
    if reply.tokens is not None:
        record["tokens"] = (reply.tokens.prompt_ids, reply.tokens.ids, reply.tokens.logprobs)
    # Python's JSON writes the shortest digits that give the same float back, and names infinities.
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def decode(data: bytes) -> Reply:
    """The reply that `encode` made `data` from. Raises `StoreError` for anything else."""
    try:
        record: dict[str, Any] = json.loads(data.decode("utf-8", "surrogatepass"))
        if "usage" in record:
            record["usage"] = Usage(*record["usage"])
        if "parts" in record:
            record["parts"] = tuple(Usage(*part) for part in record["parts"])
        if "tokens" in record:
            record["tokens"] = Tokens(*map(tuple, record["tokens"]))
        return Reply(**record)
    except (ValueError, TypeError) as error:
        raise StoreError(
            f"expected an encoded reply, got {data[:40]!r} ({error}); the file is damaged: move it away and run again"
        ) from error
