"""Content hashes and the seeds made from them.

In: JSON-like values (strings, numbers, booleans, None, lists, tuples, dicts). Out: stable digests and 31-bit seeds that
are equal in every process and on every machine. Left out on purpose: any use of `hash()`, of order, or of a clock.
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import Any

SEED_BITS = 31  # the widest range that every engine takes (llama.cpp servers want 32 bits, JavaScript ones 53)


def canonical_json(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no spaces, no NaN. Raises `TypeError` or `ValueError` for the rest."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON of `value`, as 64 hex digits."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


@lru_cache(maxsize=1 << 16, typed=True)  # typed: 1, 1.0 and True are different parts
def derive_seed(*parts: str | int | float | bool | None) -> int:
    """H(parts): a seed in [0, 2**31) that depends on the parts' content and their order, and on nothing else."""
    packed = hashlib.blake2b(canonical_json(parts).encode(), digest_size=8).digest()
    return int.from_bytes(packed, "big") >> (64 - SEED_BITS)


def call_seed(run_seed: int, item_id: str, seat: str, draw: int, replica: int = 0) -> int:
    """The seed of one draw of a seat on an item.

    It never contains the node, the protocol or the coalition, so every coalition meets the same sample (common random
    numbers), and marginal contributions are paired differences.
    """
    return derive_seed("call", run_seed, item_id, seat, draw, *(() if replica == 0 else (replica,)))
