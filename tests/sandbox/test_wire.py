"""Plain values survive the way between the processes, and nothing but plain values can be said."""

from __future__ import annotations

import json
import os
from collections import Counter, OrderedDict, deque, namedtuple
from contextlib import suppress
from enum import IntEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collabsim.sandbox.wire import LONGEST_FRAME, Frames, Gone, Unreadable, decode, encode

ATOMS = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.complex_numbers(allow_nan=False)),
    *(
        st.text(),
        st.binary(),
        st.fractions(),
        st.decimals(allow_nan=False),
        st.dates(),
        st.datetimes(),
        st.timedeltas(),
    ),
)
HASHABLE = st.recursive(ATOMS, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=5)
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(HASHABLE, inner, max_size=4),
        st.sets(HASHABLE, max_size=4),
        st.lists(inner, max_size=3).map(deque),
    ),
    max_leaves=12,
)


def refuse(value: object) -> object:
    raise TypeError(type(value))


def there(value: object) -> object:
    """A value after its way over the wire."""
    return decode(json.loads(json.dumps(encode(value, refuse))), refuse)


def shape(value: object) -> object:
    """Types all the way down."""
    if isinstance(value, dict):
        return type(value), [(shape(key), shape(part)) for key, part in value.items()]
    if isinstance(value, list | tuple | deque):
        return type(value), [shape(part) for part in value]
    return type(value)


@given(VALUES)
def test_a_plain_value_arrives_equal_and_of_the_same_types(value):
    arrived = there(value)
    assert arrived == value
    assert shape(arrived) == shape(value)


class Yes(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


class YesText(str):
    def __eq__(self, other):
        return True

    __hash__ = str.__hash__


class Number(IntEnum):
    ONE = 1


@pytest.mark.parametrize(("value", "plain"), [(Yes(3), 3), (YesText("a"), "a"), (Number.ONE, 1)])
def test_a_subclass_arrives_as_its_base(value, plain):
    arrived = there(value)
    assert type(arrived) is type(plain)
    assert arrived == plain


@pytest.mark.parametrize("value", [Counter("aab"), OrderedDict(b=1, a=2)])
def test_mappings_of_the_library_keep_their_type(value):
    assert type(there(value)) is type(value)
    assert there(value) == value


def test_named_tuples_keep_their_fields():
    arrived = there(namedtuple("P", "x y")(1, 2))
    assert (arrived.x, arrived.y, tuple(arrived)) == (1, 2, (1, 2))


@pytest.mark.parametrize(
    "form",
    [
        *({}, {"t": 1}, {"t": "int"}, {"t": "int", "v": "zz"}, {"t": "type", "v": "eval"}, {"t": "type", "v": []}),
        *(
            {"t": "range", "v": [1]},
            {"t": "set", "v": [[]]},
            {"t": "dict", "v": [1]},
            {"t": "decimal", "v": "x"},
            {"t": []},
        ),
        *({"t": "fraction", "v": ["1", "0"]}, {"t": "named", "v": [1], "fields": []}, {"t": "mine", "v": "1"}),
    ],
    ids=str,
)
def test_a_form_that_does_not_exist_is_unreadable(form):
    def resolve(data):
        return [][data["v"]]

    with pytest.raises(Unreadable):
        decode(form, resolve)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=9),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["t", "v", "fields", "name"]), inner, max_size=4)
            | st.fixed_dictionaries(
                {"t": st.sampled_from(["int", "set", "dict", "named", "type", "date", "mine"]), "v": inner}
            )
        ),
        max_leaves=9,
    )
)
def test_no_form_makes_anything_but_a_value_or_unreadable(form):
    with suppress(Unreadable):
        decode(form, lambda data: None)


def test_a_frame_that_is_too_long_is_refused_on_both_sides():
    reading, writing = os.pipe()
    with pytest.raises(Unreadable, match="cannot be handed over"):
        Frames(writing).send("x" * LONGEST_FRAME)
    os.write(writing, (LONGEST_FRAME + 1).to_bytes(4, "big"))
    with pytest.raises(Unreadable, match="at most"):
        Frames(reading).receive()
    os.close(writing)
    with pytest.raises(Gone):
        Frames(reading).receive()
    os.close(reading)
