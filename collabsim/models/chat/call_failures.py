"""What a failed model call means: worth another try, too long a prompt, or just failed.

In: any exception that a chat model raised. Out: our `CallError` (or `ContextOverflowError`) and whether and when to
retry. Works on LangChain's error classes and on HTTP status codes, so that no vendor's package is imported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from langchain_core import exceptions as langchain

from collabsim.errors import CallError, ContextOverflowError

TRANSIENT_STATUS = frozenset({408, 409, 429})
"""Retried besides all of 5xx: request timeout, conflict (lock), too many requests."""

# vLLM, llama.cpp, TGI, OpenAI and LiteLLM say it in different words, mostly with status 400.
_TOO_LONG = re.compile(
    r"context[ _-]?(?:length|size|window)|maximum context|exceed_context_size|prompt is too long"
    r"|too many (?:input )?tokens|`?inputs`? tokens \+ `?max_new_tokens`?",
    re.IGNORECASE,
)
_LONGEST_MESSAGE = 500


def status_of(error: BaseException) -> int | None:
    """The HTTP status of an SDK's error, where it has one."""
    for holder in (error, getattr(error, "response", None)):
        status = getattr(holder, "status_code", None)
        if isinstance(status, int):
            return status
    return None


def is_unreachable(error: BaseException) -> bool:
    """Whether no server answered at all."""
    return isinstance(error, langchain.ModelConnectionError)


def is_too_long(error: BaseException) -> bool:
    """Whether the prompt (with the room for its reply) does not fit the model's context window."""
    if isinstance(error, langchain.ContextOverflowError):
        return True
    said = f"{error} {getattr(error, 'code', '')} {getattr(error, 'type', '')}"
    return status_of(error) in {None, 400, 413, 422, 500} and bool(_TOO_LONG.search(said))


def is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed later: no connection, a timeout, 408, 409, 429 or 5xx.

    A 429 because the account's quota is used up does not heal by waiting, nor does a prompt that is too long.
    """
    if isinstance(error, langchain.ModelConnectionError | langchain.ModelTimeoutError):
        return True
    status = status_of(error)
    if status is None or getattr(error, "code", None) == "insufficient_quota" or is_too_long(error):
        return False
    return status in TRANSIENT_STATUS or status >= 500


def retry_after(error: BaseException) -> float | None:
    """Seconds that the server asks to wait (`retry-after-ms`, `retry-after` in seconds or as an HTTP date), or None."""
    headers: Mapping[str, str] = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(float(milliseconds) / 1000, 0.0)
        return _seconds_until(headers["retry-after"])
    except (KeyError, ValueError, TypeError, OverflowError):
        return None


def _seconds_until(when: str) -> float | None:
    if re.fullmatch(r"\s*\d+(\.\d+)?\s*", when):
        return float(when)
    moment = parsedate_to_datetime(when)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max((moment - datetime.now(UTC)).total_seconds(), 0.0)


def call_error(speaker: str, error: BaseException) -> CallError:
    """The error of this package for a failed call of `speaker`; to be raised `from error`."""
    said = f"{type(error).__name__}: {error}"
    said = said if len(said) <= _LONGEST_MESSAGE else f"{said[:_LONGEST_MESSAGE]}..."
    if is_too_long(error):
        return ContextOverflowError(
            f"{speaker}: the prompt and max_tokens do not fit its context window; shorten the prompt, lower "
            f"max_tokens, or set on_overflow: no_answer ({said})"
        )
    return CallError(f"{speaker}: the call failed ({said})")
