from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collabsim.request import Message, Request, Sampling
from collabsim.seeds import canonical_json
from collabsim.store import request_key

MESSAGES = (Message("system", "Be brief."), Message("user", "2 + 2?"))
CHANGES = {
    "temperature": 1.0,
    "top_p": 0.9,
    "top_k": 20,
    "max_tokens": 4000,
    "stop": ("\n",),
    "template": {"enable_thinking": False},
}


def key(identity="sha256:a", revision="0", messages=MESSAGES, seed=1, draw=0, **sampling):
    return request_key(identity, revision, Request(messages, Sampling(**sampling), seed, draw))


def test_the_key_is_the_same_on_every_machine():
    # Pinned: another value here would make every user's store useless. A deliberate change also changes SCHEME.
    assert key() == "c8bc59bca94e84dc4181ac849f6a9a0c"
    assert key(temperature=0) == "9b5575d72b31f0f2bc5f8f658452bac0"


@pytest.mark.parametrize("setting", Sampling.__slots__)
def test_every_sampling_setting_is_in_the_key(setting):
    assert key(**{setting: CHANGES[setting]}) != key()


@pytest.mark.parametrize("setting", ["max_tokens", "stop", "template"])
def test_a_greedy_key_keeps_the_settings_that_matter_to_it(setting):
    assert key(temperature=0, **{setting: CHANGES[setting]}) != key(temperature=0)


@pytest.mark.parametrize("change", [{"seed": 2}, {"draw": 3}, {"top_p": 0.5}, {"top_k": 5}])
def test_a_greedy_key_drops_what_greedy_decoding_ignores(change):
    assert key(temperature=0, **change) == key(temperature=0)


@pytest.mark.parametrize(
    "change", [{"seed": 2}, {"draw": 1}, {"identity": "sha256:b"}, {"revision": "1"}, {"messages": MESSAGES[1:]}]
)
def test_seed_draw_identity_revision_and_messages_are_in_the_key(change):
    assert key(**change) != key()


def test_greedy_and_sampled_requests_differ_even_when_all_else_is_equal():
    assert key(temperature=0, seed=0, draw=0) != key(temperature=1e-9, seed=0, draw=0)


def test_defaults_are_resolved_and_equal_numbers_are_one_setting():
    assert key(temperature=1, top_p=1) == key(temperature=1.0, top_p=1.0, max_tokens=512)


def test_a_template_flag_that_changes_in_place_changes_the_key():
    flags = {"enable_thinking": True}
    sampling = Sampling(template=flags)
    before = request_key("sha256:a", "0", Request(MESSAGES, sampling, 1))
    flags["enable_thinking"] = False
    assert request_key("sha256:a", "0", Request(MESSAGES, sampling, 1)) != before


def test_half_an_emoji_has_a_key_of_its_own():
    assert key(messages=(Message("user", "\ud83d"),)) != key(messages=(Message("user", "\ud83e"),))


texts = st.text(max_size=8)
messages = st.lists(st.builds(Message, st.sampled_from(["system", "user", "assistant"]), texts), max_size=3).map(tuple)
asked = st.tuples(texts, texts, messages, st.integers(0, 3), st.integers(0, 3), st.sampled_from(["", "a", '","a']))


@given(asked, asked)
def test_two_keys_are_equal_only_when_everything_is_equal(one, other):
    def key_of(identity, revision, messages, seed, draw, stop):
        return request_key(identity, revision, Request(messages, Sampling(stop=(stop,)), seed, draw))

    assert (key_of(*one) == key_of(*other)) == (canonical_json(one) == canonical_json(other))


@given(messages, st.integers(0, 2**31 - 1))
def test_the_key_depends_on_content_and_not_on_objects(messages, seed):
    request = Request(messages, Sampling(stop=("x",), template={"b": 1, "a": 2}), seed)
    twin = replace(
        request,
        messages=tuple(Message(*map(str, message)) for message in messages),
        sampling=Sampling(stop=("x",), template={"a": 2, "b": 1}),
    )
    assert request_key("m", "0", request) == request_key("m", "0", twin)
