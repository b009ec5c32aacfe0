"""Quotes the replies of other models in a prompt.

In: replies. Out: text in which each reply is a numbered, quoted block. Quoted lines start with `> ` and chat markers in
them are defused, so that a peer's words can neither close the block nor open a turn of their own. Replies without an
answer are left out by the caller (`with_answers`): a failure or an empty reply is never rendered into a prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from collabsim.context import RunContext
from collabsim.episode import Reply
from collabsim.errors import ConfigError
from collabsim.scorers.reading.scoring import NO_ANSWER
from collabsim.scorers.reading.text import final_part

MARKER = re.compile(r"<(\|[^|<>\n]{1,40}\||/?s|/?(?:start|end)_of_turn|bos|eos|/?think)>|\[(/?INST)\]")


def quote(text: str, limit: int = 2000) -> str:
    """`text` as a quoted block of at most `limit` characters, cut in the middle where it is longer."""
    text = text.strip()
    if len(text) > limit:
        half = max(limit // 2 - 3, 1)
        text = f"{text[:half]}\n[...]\n{text[-half:]}"
    defused = MARKER.sub(lambda match: f"({match[1] or match[2]})", text)
    return "\n".join(f"> {line}" for line in defused.splitlines())


def quote_all(replies: Iterable[Reply], *, label: str = "Answer", limit: int = 2000) -> str:
    """Numbered quoted blocks: `Answer 1:`, `Answer 2:` and so on, in the given order."""
    return "\n\n".join(f"{label} {k}:\n{quote(reply.text, limit)}" for k, reply in enumerate(replies, start=1))


def with_answers(replies: Mapping[str, Reply], run: RunContext) -> dict[str, Reply]:
    """Those replies that commit to an answer; empty, cut, filtered and unparsed ones are left out."""
    return {seat: reply for seat, reply in replies.items() if run.answers.extract(reply.text, reply.finish) is not None}


def with_words(replies: Mapping[str, Reply]) -> dict[str, Reply]:
    """Those replies that have words to show, answer or not: no failure, not empty, past their thinking.

    For comments and notes, which need not commit to an answer.
    """
    return {name: reply for name, reply in replies.items() if has_words(reply)}


def has_words(reply: Reply) -> bool:
    """Whether a reply has any text to show."""
    return reply.finish not in NO_ANSWER and bool((final_part(reply.text) or "").strip())


def fill(text: str, **parts: str) -> str:
    """A prompt with its placeholders `{name}` replaced; other braces stay as they are (JSON, code, LaTeX)."""
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}", part)
    return text


def check_placeholder(text: str, name: str) -> None:
    """Raises `ConfigError` when a prompt of the user lacks a placeholder that it needs."""
    if f"{{{name}}}" not in text:
        raise ConfigError(f"a prompt of this protocol must contain {{{name}}}, got {text!r}")
