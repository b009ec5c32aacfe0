"""Turns of a conversation in the shape that chat templates take.

In and out: messages. Left out on purpose: words and tokens.
"""

from __future__ import annotations

from collabsim.request import Message, Messages


def merged(messages: Messages) -> Messages:
    """Neighbours of one role as one message, a blank line between: many templates refuse two turns of one role."""
    joined: list[Message] = []
    for role, content in messages:
        if joined and joined[-1].role == role:
            joined[-1] = Message(role, f"{joined[-1].content}\n\n{content}")
        else:
            joined.append(Message(role, content))
    return tuple(joined)


def system_to_user(messages: Messages) -> Messages:
    """The system prompts in front of the first user turn, for templates that have no place for them."""
    told = [content for role, content in messages if role == "system" and content.strip()]
    rest = [message for message in messages if message.role != "system"]
    if told:
        first = next((place for place, message in enumerate(rest) if message.role == "user"), None)
        if first is None:
            rest.insert(0, Message("user", "\n\n".join(told)))
        else:
            rest[first] = Message("user", "\n\n".join([*told, rest[first].content]))
    return merged(tuple(rest))
