import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collabsim.episode import Reply, Tokens, Usage
from collabsim.errors import StoreError
from collabsim.store.codec import decode, encode

any_text = st.text(st.characters(exclude_categories=()))  # lone surrogates too
ids = st.lists(st.integers(0, 2**31)).map(tuple)
floats = st.lists(st.floats(allow_nan=False)).map(tuple)
replies = st.builds(
    Reply,
    text=any_text,
    finish=st.sampled_from(["stop", "length", "content_filter", "overflow"]),
    usage=st.builds(Usage, st.integers(0, 10**6), st.integers(0, 10**6)),
    tokens=st.none() | st.builds(Tokens, ids, ids, floats),
    revision=any_text,
    seconds=st.floats(0, allow_nan=False),
    served_by=st.none() | any_text,
    parts=st.lists(st.builds(Usage, st.integers(0, 10**6), st.integers(0, 10**6)), max_size=3).map(tuple),
)


@given(replies)
def test_a_reply_comes_back_as_it_was(reply):
    assert decode(encode(reply)) == reply


def test_log_probabilities_come_back_to_the_last_bit():
    logprobs = (-0.1 - 0.2, -1e-308, float("-inf"), -0.0, 2**-1074)
    back = decode(encode(Reply("x", tokens=Tokens((1,), (2,) * 5, logprobs)))).tokens
    assert [value.hex() for value in back.logprobs] == [value.hex() for value in logprobs]


def test_the_bytes_are_json_without_what_is_default():
    assert json.loads(encode(Reply("4"))) == {"text": "4"}


def test_what_is_not_plain_numbers_and_text_is_refused_by_the_encoder():
    with pytest.raises(TypeError):
        encode(Reply("x", tokens=Tokens((object(),), (), ())))


@pytest.mark.parametrize(
    "data", [b"", b"\x00\xff", b'{"text": "cut', b"[]", b"{}", b'{"text":"x","unknown":1}', b'{"text":"x","usage":7}']
)
def test_damaged_bytes_are_a_store_error(data):
    with pytest.raises(StoreError, match="damaged"):
        decode(data)
