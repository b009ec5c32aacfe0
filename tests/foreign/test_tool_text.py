"""Tools told in text, and tool calls read from it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from collabsim.errors import ConfigError
from collabsim.foreign.tool_text import as_text, read_calls
from collabsim.request import Message

TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
CALL = {"name": "add", "args": {"x": 1}, "id": "call_1", "type": "tool_call"}
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3), max_leaves=4
)


def test_messages_without_tools_stay_as_they_are():
    said = [SystemMessage("S"), HumanMessage("H"), AIMessage("A")]
    assert as_text(said, []) == (Message("system", "S"), Message("user", "H"), Message("assistant", "A"))


def test_tools_are_told_in_the_system_prompt_or_in_one_of_their_own():
    (alone, question) = as_text([HumanMessage("H")], [TOOL])
    (joined, _) = as_text([SystemMessage("S"), HumanMessage("H")], [TOOL])
    assert (alone.role, question) == ("system", Message("user", "H"))
    assert joined.content == f"S\n\n{alone.content}"
    assert json.dumps(TOOL, sort_keys=True) in alone.content


@pytest.mark.parametrize(
    ("choice", "words"),
    [("any", "Call one of them now."), ("add", "Call the tool add now."), ({"function": {"name": "add"}}, "tool add")],
)
def test_a_tool_choice_is_told(choice, words):
    assert words in as_text([HumanMessage("H")], [TOOL], choice)[0].content
    assert "now." not in as_text([HumanMessage("H")], [TOOL], "auto")[0].content


def test_earlier_calls_and_their_responses_are_written_out_in_turns():
    second = {**CALL, "id": "call_2"}
    said = [
        HumanMessage("H"),
        AIMessage("So:", tool_calls=[CALL, second]),
        ToolMessage("2", tool_call_id="call_1"),
        ToolMessage("3", tool_call_id="call_2"),
    ]
    written = '<tool_call>{"arguments": {"x": 1}, "name": "add"}</tool_call>'
    assert as_text(said, [])[1:] == (
        Message("assistant", f"So:\n{written}\n{written}"),
        Message("user", "<tool_response>\n2\n</tool_response>\n<tool_response>\n3\n</tool_response>"),
    )


def test_text_in_blocks_is_read_and_an_image_is_refused():
    assert as_text([HumanMessage([{"type": "text", "text": "H"}])], []) == (Message("user", "H"),)
    with pytest.raises(ConfigError, match="part of type 'image_url'"):
        as_text([HumanMessage([{"type": "image_url", "image_url": {"url": "x"}}])], [])


@given(st.from_regex(r"[a-z_]{1,12}", fullmatch=True), st.dictionaries(st.text(), values, max_size=3))
def test_a_written_call_is_read_back(name, arguments):
    call = {"name": name, "args": arguments, "id": "x", "type": "tool_call"}
    (_, message) = as_text([HumanMessage("H"), AIMessage("", tool_calls=[call])], [])
    said = read_calls(message.content, ["a"])
    if "</tool_call>" not in json.dumps(arguments):
        assert [(found["name"], found["args"]) for found in said.calls] == [(name, arguments)]
        assert (said.text, said.broken) == ("", [])


@given(st.text(alphabet='<tool_call>/{}"name:,arguments x\n'))
def test_reading_never_fails(text):
    said = read_calls(text, [])
    assert said == read_calls(text, [])
    if not said.calls and not said.broken:
        assert said.text == text


@pytest.mark.parametrize(
    "body",
    ["", "add(1)", '{"arguments": {}}', '{"name": "add", "arguments": 3}', "[1]", '{"name": "add"'],
)
def test_what_cannot_be_read_as_a_call_is_kept_as_a_broken_one(body):
    said = read_calls(f"Well <tool_call>{body}", [])
    assert (said.text, said.calls, len(said.broken)) == ("Well", [], 1)
    assert said.broken[0]["args"] == body


def test_calls_of_one_reply_have_ids_of_their_own_that_a_repeated_run_has_again():
    text = '<tool_call>{"name": "add"}</tool_call>' * 2
    ids = [call["id"] for call in read_calls(text, ["a", 0]).calls]
    assert len(set(ids)) == 2
    assert ids == [call["id"] for call in read_calls(text, ["a", 0]).calls]
    assert not set(ids) & {call["id"] for call in read_calls(text, ["a", 1]).calls}
