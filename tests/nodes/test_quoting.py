"""Which replies have something to show."""

import pytest

from collabsim.episode import Reply
from collabsim.nodes.quoting import has_words, with_words


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        (Reply("The sum is off by one."), True),
        (Reply("The sum is off by", "length"), True),
        (Reply("<think>hm</think>It is off by one."), True),
        (Reply(""), False),
        (Reply(" \n"), False),
        (Reply("<think>hm"), False),
        (Reply("<think>hm</think> "), False),
        (Reply("The sum is off by one.", "content_filter"), False),
        (Reply("", "overflow"), False),
    ],
)
def test_a_reply_has_words_when_there_is_something_to_read(reply, shown):
    assert has_words(reply) is shown
    assert with_words({"a": reply}) == ({"a": reply} if shown else {})
