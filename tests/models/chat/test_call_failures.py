from __future__ import annotations

from types import SimpleNamespace

import pytest

from collabsim.errors import CallError, ContextOverflowError
from collabsim.models.chat.call_failures import call_error, is_transient, retry_after, status_of


class HttpError(Exception):
    def __init__(self, status: int, headers: dict[str, str] | None = None, message: str = "", code: str | None = None):
        super().__init__(message)
        self.status_code, self.code = status, code
        self.response = SimpleNamespace(headers=headers or {})


class ResponseError(Exception):
    """As httpx raises it: the status is the response's."""

    def __init__(self, status: int):
        self.response = SimpleNamespace(status_code=status, headers={})


def test_the_status_is_found_on_the_error_or_on_its_response():
    assert (status_of(HttpError(418)), status_of(ResponseError(503)), status_of(ValueError())) == (418, 503, None)


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (HttpError(429), True),
        (HttpError(500), True),
        (ResponseError(503), True),
        (HttpError(429, code="insufficient_quota"), False),
        (HttpError(400), False),
        (HttpError(500, message="context size exceeded"), False),
        (ValueError("odd"), False),
    ],
)
def test_only_what_may_pass_is_tried_again(error, again):
    assert is_transient(error) is again


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00"}, 0.0),
        ({"retry-after": "later"}, None),
        ({}, None),
    ],
)
def test_the_wish_of_the_server_is_read(headers, seconds):
    assert retry_after(HttpError(429, headers)) == seconds


def test_an_error_without_a_response_has_no_wish():
    assert retry_after(ValueError()) is None


def test_a_long_message_is_shortened():
    assert len(str(call_error("m", ValueError("x" * 10_000)))) < 700


def test_overflow_and_other_failures_are_told_apart():
    assert type(call_error("m", ValueError("odd"))) is CallError
    assert type(call_error("m", HttpError(400, code="context_length_exceeded"))) is ContextOverflowError
