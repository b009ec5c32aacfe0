"""Where replies end, on a tokenizer with one token a byte."""

from __future__ import annotations

import pytest
from engines import requires
from tiny_folders import write_folder

from collabsim.request import Sampling

pytestmark = requires("torch", "transformers")


@pytest.fixture(scope="module")
def endings(tmp_path_factory):
    from transformers import AutoTokenizer

    from collabsim.models.engines.reply_ending import Endings

    folder = write_folder(tmp_path_factory.mktemp("tokenizer"), adds_bos=False)
    return Endings(AutoTokenizer.from_pretrained(folder, local_files_only=True), {2, 4})


def reply(endings, text, *stop, room=1000):
    """Feed the text token by token, as an engine does; the generation and the tokens it took."""
    ids = endings._tokenizer(text, add_special_tokens=False)["input_ids"]
    for count in range(1, len(ids) + 1):
        found = endings.finished(ids[:count], [0.0] * count, Sampling(stop=stop, max_tokens=room))
        if found is not None:
            return found, count
    return None, len(ids)


def test_a_long_reply_without_an_end_goes_on(endings):
    assert reply(endings, "words " * 60, "stop")[0] is None


def test_the_text_ends_before_the_stop_string_wherever_it_stands(endings):
    for before in range(0, 60, 7):
        found, count = reply(endings, "x" * before + "STOP and more", "STOP")
        assert (found.text, found.finish, count) == ("x" * before, "stop", before + 4)


def test_the_first_of_several_stop_strings_counts(endings):
    assert reply(endings, "one, two. three", ".", ",")[0].text == "one"
    assert reply(endings, "abcdef", "cde", "bcde")[0].text == "a"


def test_a_stop_string_of_characters_of_several_bytes(endings):
    found, _ = reply(endings, "ünïcødé 🙂🙂 fin. Ende", "🙂 fin")
    assert found.text == "ünïcødé 🙂"


def test_special_tokens_are_no_part_of_the_text_that_is_searched(endings):
    found, _ = reply(endings, "a<s>b<pad>c", "bc")
    assert found.text == "a"


def test_an_end_token_wins_over_the_room_left(endings):
    found, _ = reply(endings, "ab<|im_end|>", room=3)
    assert (found.text, found.ids[-1], found.finish) == ("ab", 4, "stop")


def test_a_stop_string_in_the_last_token_wins_over_the_room_left(endings):
    assert reply(endings, "abc", "c", room=3)[0].finish == "stop"
