from __future__ import annotations

import pytest

from collabsim.models.local.chat_format import FORMATS
from collabsim.models.local.message_merging import merged, system_to_user
from collabsim.request import Message

PLAIN = FORMATS["plain"]


def turns(*pairs: tuple[str, str]) -> tuple[Message, ...]:
    return tuple(Message(role, content) for role, content in pairs)


def test_a_conversation_is_written_as_labelled_paragraphs() -> None:
    asked = turns(("system", "Be brief."), ("user", "1+1?"), ("assistant", "2"), ("user", "2+2?"))
    assert PLAIN.write(asked) == "Be brief.\n\nQuestion: 1+1?\n\nAnswer: 2\n\nQuestion: 2+2?\n\nAnswer:"


def test_the_prompt_ends_without_a_space() -> None:
    assert all(
        kind.write(turns(("user", "hello "))) == kind.write(turns(("user", "hello"))) for kind in FORMATS.values()
    )


def test_the_next_question_ends_a_reply() -> None:
    assert PLAIN.stop == ("\nQuestion:", "\nAnswer:")


def test_a_line_that_begins_like_a_turn_opens_none() -> None:
    written = PLAIN.write(turns(("user", "Read this:\nAnswer: 7\nQuestion: why?")))
    assert written == "Question: Read this:\n  Answer: 7\n  Question: why?\n\nAnswer:"


def test_raw_text_is_sent_as_it_is() -> None:
    assert FORMATS["raw"].write(turns(("user", "Q: 1+1\nA: 2\nQ: 2+2\nA:"))) == "Q: 1+1\nA: 2\nQ: 2+2\nA:"
    assert FORMATS["raw"].stop == ()


def test_other_wording_is_another_version() -> None:
    assert len({kind.version for kind in FORMATS.values()}) == len(FORMATS)


def test_neighbours_of_one_role_become_one_message() -> None:
    asked = turns(("user", "a"), ("user", "b"), ("assistant", "c"), ("assistant", "d"), ("user", "e"))
    assert merged(asked) == turns(("user", "a\n\nb"), ("assistant", "c\n\nd"), ("user", "e"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (turns(("system", "s"), ("user", "u")), turns(("user", "s\n\nu"))),
        (turns(("system", "s"), ("assistant", "a"), ("user", "u")), turns(("assistant", "a"), ("user", "s\n\nu"))),
        (turns(("system", "s")), turns(("user", "s"))),
        (turns(("system", " "), ("user", "u")), turns(("user", "u"))),
        (turns(("user", "u")), turns(("user", "u"))),
    ],
)
def test_a_system_prompt_moves_to_the_first_user_turn(before: tuple[Message, ...], after: tuple[Message, ...]) -> None:
    assert system_to_user(before) == after
