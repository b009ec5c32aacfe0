"""The store's key of a generation: everything that decides a model's reply, and nothing else.

In: a model's identity and revision, and a `Request`. Out: 32 hex digits, computable without loading the model. Left
out on purpose: seat, node, protocol, coalition, item and clock; and, for greedy requests, all that greedy decoding
ignores.
"""

from __future__ import annotations

import json
from functools import lru_cache
from hashlib import blake2b

from collabsim.request import Request, Sampling
from collabsim.seeds import canonical_json

SCHEME = b"collabsim.gen/1"
"""Version of the key scheme, part of the hash: keys of a later scheme never equal those of this one."""

# The same text as `seeds.canonical_json`; a ready encoder saves a third of the time on this path.
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def request_key(identity: str, revision: str, request: Request) -> str:
    """The key under which the reply to `request` is kept.

    `identity` names the weights, tokenizer, template and engine by content; `revision` the version of trained weights.
    Returns 128 bits of BLAKE2b over the canonical JSON of both, the messages, the sampling with every default resolved,
    the seed and the draw. Greedy requests drop seed, draw, top_p and top_k. Raises `TypeError` or `ValueError` for
    messages or template flags that are not JSON.
    """
    sampling = request.sampling
    draw = "" if sampling.greedy else f",{request.seed},{request.draw}"
    text = f"[{_model_text(identity, revision)},{_encode(request.messages)},{_sampling_text(sampling)}{draw}]"
    # surrogatepass: half an emoji, cut off by a server, is a text like any other here
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, person=SCHEME).hexdigest()


@lru_cache(maxsize=1024)
def _model_text(identity: str, revision: str) -> str:
    return _encode((identity, revision))[1:-1]


def _sampling_text(sampling: Sampling) -> str:
    if sampling.greedy:
        text = _settings_text(0.0, 1.0, 0, sampling.max_tokens, tuple(sampling.stop))
    else:
        text = _settings_text(
            sampling.temperature, sampling.top_p, sampling.top_k, sampling.max_tokens, tuple(sampling.stop)
        )
    # Template flags are a mapping that its owner could change, so they are read each time.
    return f"{text},{canonical_json(dict(sampling.template)) if sampling.template else '{}'}"


@lru_cache(maxsize=1024)
def _settings_text(temperature: float, top_p: float, top_k: int, max_tokens: int, stop: tuple[str, ...]) -> str:
    # 1 and 1.0 are one temperature, in this cache and in the text.
    return _encode((float(temperature), float(top_p), int(top_k), int(max_tokens), stop))
