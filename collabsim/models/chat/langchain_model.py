"""Speaking to any LangChain chat model through LangChain's own interface.

In: a `BaseChatModel` and a typed request. Out: a `Reply`. Sampling settings and the seed are set where the model has
them: as keywords where its generate method names them, else on a copy of the model where it has such a field (that is
what `configurable_fields` does too). Settings that a model does not have are left out, silently: it is then up to the
model how it samples. Left out on purpose: retries (those are the model's own) and token ids.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from langchain_core.globals import get_llm_cache
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from collabsim.episode import Reply, Usage
from collabsim.errors import CollabsimError
from collabsim.identity import revision_of
from collabsim.models.chat.call_failures import call_error
from collabsim.request import Request

_FIELDS = {
    "temperature": ("temperature",),
    "top_p": ("top_p",),
    "top_k": ("top_k",),
    "max_tokens": ("max_tokens", "max_output_tokens", "num_predict", "max_new_tokens"),
    "seed": ("seed",),
}
"""Our settings, and what chat models of different vendors call them."""

_FINISH = {
    "length": {"length", "max_tokens", "max_output_tokens", "model_length"},
    "content_filter": {"content_filter", "safety", "refusal", "blocklist", "prohibited_content", "recitation", "spii"},
}


async def areply(model: BaseChatModel, request: Request) -> Reply:
    """One reply of any chat model.

    A cut, filtered or empty text is a reply. Raises `ContextOverflowError` when the model says that the prompt is too
    long, `CallError` for every other exception of the model.
    """
    speaker, keywords = prepared(model, request)
    stop = list(request.sampling.stop) or None
    started = time.perf_counter()
    try:
        # No callbacks: the reply may serve several runs, so it is not an event of the graph that happened to ask first.
        # Tracing that the environment switches on (LangSmith) still sees the call.
        message = await speaker.ainvoke(list(request.messages), config={"callbacks": []}, stop=stop, **keywords)
    except CollabsimError:
        raise
    except Exception as error:
        raise call_error(describe(model), error) from error
    return as_reply(message, revision_of(model), time.perf_counter() - started)


def prepared(model: BaseChatModel, request: Request) -> tuple[BaseChatModel, dict[str, Any]]:
    """The model to invoke and the keywords to invoke it with, so that the request's settings are in force."""
    sampling = request.sampling
    settings = {
        "temperature": sampling.temperature,
        "top_p": 1.0 if sampling.greedy else sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "seed": 0 if sampling.greedy else request.seed,
    }
    if sampling.top_k and not sampling.greedy:
        settings["top_k"] = sampling.top_k
    named, fields = _accepted(type(model))
    keywords = {named[name]: value for name, value in settings.items() if name in named}
    changes = {fields[name]: value for name, value in settings.items() if name in fields and name not in named}
    if model.cache or (model.cache is None and get_llm_cache() is not None):
        changes["cache"] = False  # LangChain's cache would answer all draws of one prompt alike
    return (model.model_copy(update=changes) if changes else model), keywords


@lru_cache(maxsize=256)
def _accepted(kind: type[BaseChatModel]) -> tuple[dict[str, str], dict[str, str]]:
    """Which settings a class takes: as named keywords of its generate methods, and as fields (ours -> its name)."""
    parameters = {
        name
        for method in (kind._generate, kind._agenerate)
        for name, parameter in inspect.signature(method).parameters.items()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    }
    named: dict[str, str] = {}
    fields: dict[str, str] = {}
    for setting, names in _FIELDS.items():
        for name in names:
            if name in parameters:
                named.setdefault(setting, name)
            elif name in kind.model_fields:
                fields.setdefault(setting, name)
    return named, fields


def as_reply(message: BaseMessage, revision: str = "0", seconds: float = 0.0) -> Reply:
    """A LangChain message as a reply: text, finish reason, usage, and which model a server said it was."""
    metadata: Mapping[str, Any] = message.response_metadata or {}
    usage: Mapping[str, Any] = (message.usage_metadata if isinstance(message, AIMessage) else None) or {}
    served = [metadata.get("model_name") or metadata.get("model"), metadata.get("system_fingerprint")]
    return Reply(
        text=str(message.text),
        finish=_finish(metadata),
        usage=Usage(int(usage.get("input_tokens") or 0), int(usage.get("output_tokens") or 0)),
        revision=revision,
        seconds=seconds,
        served_by=" ".join(str(part) for part in served if part) or None,
    )


def _finish(metadata: Mapping[str, Any]) -> str:
    """The finish reason in our words; anything that is neither a cut nor a filter is `stop`."""
    reason = next(
        (metadata[key] for key in ("finish_reason", "stop_reason", "done_reason") if metadata.get(key)), "stop"
    )
    return next((ours for ours, theirs in _FINISH.items() if str(reason).lower() in theirs), "stop")


def describe(model: BaseChatModel) -> str:
    """A model's name for messages: its class, and the model it serves where it says so."""
    served = getattr(model, "model_name", None) or getattr(model, "model", None)
    return f"{type(model).__name__} {served}" if isinstance(served, str) else type(model).__name__
