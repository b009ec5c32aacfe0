"""Tools for models that read and write plain text: the prompt that describes them, and the calls in a reply.

In: LangChain messages and tools. Out: text messages, and from a reply its text and its tool calls. The form is that of
the Hermes function-calling models (NousResearch), which Qwen and other open models are trained on:
`<tool_call>{"name": ..., "arguments": {...}}</tool_call>` and `<tool_response>...</tool_response>`. A model may ignore
it: nothing forces a call. Left out on purpose: the tool interfaces of servers, whose calls a text store cannot hold.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage, ToolMessage

from collabsim.errors import ConfigError
from collabsim.request import Message, Messages, as_messages
from collabsim.seeds import digest

OPEN, CLOSE = "<tool_call>", "</tool_call>"
TOOLS_PROMPT = (
    "You can call these tools:\n<tools>\n{tools}\n</tools>\n"
    'To call a tool, write <tool_call>{{"name": ..., "arguments": {{...}}}}</tool_call> and wait for its '
    "<tool_response>.{must}"
)
CHOICE_PROMPT = " Call {which} now."


class ParsedReply(NamedTuple):
    """A reply, taken apart."""

    text: str
    calls: list[dict[str, Any]]
    """As `AIMessage.tool_calls` has them."""
    broken: list[dict[str, Any]]
    """As `AIMessage.invalid_tool_calls` has them: calls that cannot be read."""


def as_text(messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]], choice: Any = None) -> Messages:
    """A conversation as text messages, with the tools described in a system prompt.

    Tool calls and responses of earlier turns are written out; responses to the calls of one turn are one message of the
    user. Raises `ConfigError` for content that is not text.
    """
    turns: list[Message] = []
    for message in messages:
        text = _content(message)
        if isinstance(message, ToolMessage):
            turns = _with_response(turns, f"<tool_response>\n{text}\n</tool_response>")
        elif calls := getattr(message, "tool_calls", None):
            turns.append(Message("assistant", "\n".join([*([text] if text else []), *map(_written, calls)])))
        else:
            turns += as_messages([{"role": message.type, "content": text}])
    return _with_tools(tuple(turns), tools, choice) if tools else tuple(turns)


def _content(message: BaseMessage) -> str:
    """The text of a message. Raises `ConfigError` when it has parts that are no text."""
    if isinstance(message.content, str):
        return message.content
    other = [
        part for part in message.content if isinstance(part, Mapping) and part.get("type") not in ("text", "tool_use")
    ]
    if other:
        raise ConfigError(
            f"a seat reads text, got a message with a part of type {other[0].get('type')!r}; leave it out"
        )
    return str(message.text)


def _with_response(turns: list[Message], response: str) -> list[Message]:
    if turns and turns[-1].role == "user" and turns[-1].content.startswith("<tool_response>"):
        return [*turns[:-1], Message("user", f"{turns[-1].content}\n{response}")]
    return [*turns, Message("user", response)]


def _written(call: Mapping[str, Any]) -> str:
    return f"{OPEN}{_json({'name': call['name'], 'arguments': call['args']})}{CLOSE}"


def _with_tools(messages: Messages, tools: Sequence[Mapping[str, Any]], choice: Any) -> Messages:
    must = CHOICE_PROMPT.format(which=_which(choice)) if _which(choice) else ""
    text = TOOLS_PROMPT.format(tools="\n".join(map(_json, tools)), must=must)
    if messages and messages[0].role == "system":
        return (Message("system", f"{messages[0].content}\n\n{text}"), *messages[1:])
    return (Message("system", text), *messages)


def _which(choice: Any) -> str:
    """A `tool_choice` in words; empty when the model is free to choose."""
    if choice in (None, False, "auto", "none"):
        return ""
    if choice in (True, "any", "required"):
        return "one of them"
    name = choice.get("function", choice).get("name") if isinstance(choice, Mapping) else choice
    return f"the tool {name}"


def read_calls(text: str, origin: Sequence[Any]) -> ParsedReply:
    """A reply taken apart. Ids of calls follow from `origin` and the text, so a run that is repeated has the same."""
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    broken: list[dict[str, Any]] = []
    rest = text
    while (start := rest.find(OPEN)) >= 0:
        texts.append(rest[:start])
        body, _, rest = rest[start + len(OPEN) :].partition(CLOSE)
        call_id = f"call_{digest([*origin, text, len(calls) + len(broken)])[:16]}"
        call = _parsed(body)
        if call is None:
            problem = "expected JSON with name and arguments"
            broken.append({"name": None, "args": body, "id": call_id, "error": problem, "type": "invalid_tool_call"})
        else:
            calls.append({"name": call[0], "args": call[1], "id": call_id, "type": "tool_call"})
    texts.append(rest)
    return ParsedReply("".join(texts).strip() if calls or broken else text, calls, broken)


def _parsed(body: str) -> tuple[str, dict[str, Any]] | None:
    """Name and arguments of a written call, or None."""
    try:
        call = json.loads(body)
        arguments = call.get("arguments", {})
        arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, AttributeError, RecursionError):
        return None
    sound = isinstance(call.get("name"), str) and isinstance(arguments, dict)
    return (call["name"], arguments) if sound else None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
