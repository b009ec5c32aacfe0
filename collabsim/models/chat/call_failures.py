"""Failures of model calls: which of them are tried again, when, and what error is left in the end.

In: a call that may fail, or any exception that a chat model raised. Out: the call's result after retries, or our `CallError`
(`ContextOverflowError` for a prompt that is too long). Works on LangChain's error classes and on HTTP status codes, so that
no vendor's package is imported. Left out on purpose: the calls themselves.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from langchain_core import exceptions as langchain
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_random_exponential

from collabsim.errors import CallError, ContextOverflowError

T = TypeVar("T")

FIRST_CONTACT_SECONDS = 15.0
"""How long a server that has never answered is waited for: a wrong address should not cost a whole retry budget."""
LONGEST_BACKOFF_SECONDS = 30.0
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
    words = f"{error} {getattr(error, 'code', '')} {getattr(error, 'type', '')}"
    return status_of(error) in {None, 400, 413, 422, 500} and bool(_TOO_LONG.search(words))


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
    reason = f"{type(error).__name__}: {error}"
    reason = reason if len(reason) <= _LONGEST_MESSAGE else f"{reason[:_LONGEST_MESSAGE]}..."
    if is_too_long(error):
        return ContextOverflowError(
            f"{speaker}: the prompt and max_tokens do not fit its context window; shorten the prompt, lower "
            f"max_tokens, or set on_overflow: no_answer ({reason})"
        )
    return CallError(f"{speaker}: the call failed ({reason})")


@dataclass(frozen=True, slots=True)
class Retries:
    """How patiently transient failures of one server are retried."""

    budget: float
    """Seconds from the first attempt within which the last one must start; 0 means one attempt."""
    backoff: float
    """Scale in seconds of the random exponential wait between attempts, and of the jitter added to `Retry-After`."""
    has_answered: Callable[[], bool]
    """Whether this server ever answered; one that did not gets `FIRST_CONTACT_SECONDS`."""

    async def run(self, speaker: str, call: Callable[[], Awaitable[T]]) -> T:
        """The result of `call`, tried again after transient failures; `speaker` is who is asked, for messages.

        Raises `ContextOverflowError` or `CallError` when it fails for good, or for the whole budget.
        """
        retrying = AsyncRetrying(
            retry=retry_if_exception(is_transient), wait=self._wait, stop=self._over_budget, reraise=True
        )
        try:
            return await retrying(call)
        except Exception as error:
            raise call_error(self._tried(speaker, error, retrying.statistics["attempt_number"]), error) from error

    def _tried(self, speaker: str, error: Exception, attempts: int) -> str:
        """Who failed, and for transient failures how patiently it was asked."""
        if not is_transient(error):
            return speaker
        asked = retry_after(error)
        wish = f", the server asks to wait {asked:.0f} s" if asked else ""
        return f"{speaker}, {attempts} attempts, retry_budget {self.budget:g} s{wish}"

    def _wait(self, state: RetryCallState) -> float:
        """Seconds until the next attempt: what the server asks for, else random exponential; jitter in both."""
        backoff = wait_random_exponential(multiplier=self.backoff, max=LONGEST_BACKOFF_SECONDS)
        error = state.outcome.exception() if state.outcome else None
        asked = retry_after(error) if error else None
        if asked is None:
            return backoff(state)
        return asked + wait_random_exponential(multiplier=self.backoff, max=self.backoff)(state)

    def _over_budget(self, state: RetryCallState) -> bool:
        """Whether the next attempt would start too late."""
        error = state.outcome.exception() if state.outcome else None
        never_met = error is not None and is_unreachable(error) and not self.has_answered()
        budget = min(self.budget, FIRST_CONTACT_SECONDS) if never_met else self.budget
        return (state.seconds_since_start or 0.0) + state.upcoming_sleep >= budget
