"""Fenced blocks of Markdown: where code stands in a reply.

In: text. Out: blocks in order, with their tags. Fences are paired as CommonMark says (same character, at least as long, no
tag on the closing one), with two allowances for how models write: a fence inside an open triple-quoted string is text of the
program, and a fence that is never closed reaches to the end. Left out on purpose: code that is merely indented.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

from collabsim.scorers.reading.python_syntax import syntax_tree

_OPENING = re.compile(r"(?P<indent>[ \t]*(?:[-*+>] ?|\d+[.)] )*[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*(?P<tag>[^`\n]*)\Z")
"""A fence that opens a block, in a list too: "- ```python"."""
_CLOSING = re.compile(r"[ \t>]*(?P<fence>`{3,}|~{3,})[ \t]*\Z")
"""A fence that closes a block: "```"."""
_PYTHON = re.compile(r"\{?\.?(?:python|py|ipython|sage|cpython)(?:[ -]?[0-9.]*)?\}?\Z", re.IGNORECASE)
"""A tag that says Python: `python3`."""


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block."""

    tag: str
    """First word of the info string, as written; empty for an untagged fence."""
    code: str
    closed: bool
    """False when the text ended inside the block."""

    @property
    def is_python(self) -> bool:
        """Whether its tag says Python."""
        return bool(_PYTHON.match(self.tag))

    @property
    def may_be_python(self) -> bool:
        """Whether its tag says Python, or nothing."""
        return not self.tag or self.is_python


def blocks(text: str) -> list[Block]:
    """The fenced blocks of `text`, in order."""
    fenced, lines, at = [], text.splitlines(), 0
    while at < len(lines):
        opening = _OPENING.match(lines[at])
        if opening is None:
            at += 1
            continue
        tag = (opening["tag"].split() or [""])[0]
        end = _end(lines, at + 1, opening["fence"], string_aware=not tag or bool(_PYTHON.match(tag)))
        code = _without_margin(lines[at + 1 : end], opening["indent"])
        fenced.append(Block(tag, code, end < len(lines)))
        at = end + 1
    return fenced


def _end(lines: list[str], start: int, fence: str, *, string_aware: bool) -> int:
    """The line that closes a block; the number of lines when none does."""
    closings = [at for at in range(start, len(lines)) if _closes(lines[at], fence)]
    for closing in closings if string_aware else ():
        if not _in_string("\n".join(lines[start:closing])):
            return closing
    return closings[0] if closings else len(lines)


def _closes(line: str, fence: str) -> bool:
    closing = _CLOSING.match(line)
    return bool(closing) and closing["fence"][0] == fence[0] and len(closing["fence"]) >= len(fence)  # type: ignore[index]


def _in_string(code: str) -> bool:
    """Whether code ends inside a triple-quoted string."""
    if '"""' not in code and "'''" not in code:
        return False
    try:
        syntax_tree(textwrap.dedent(code))
    except SyntaxError as error:
        return "unterminated triple-quoted" in error.msg
    except (ValueError, RecursionError, MemoryError):
        return False
    return False


def _without_margin(lines: list[str], indent: str) -> str:
    """The lines without the margin that the fence itself stands at (in a list, or a quotation)."""
    if ">" in indent:
        lines = [re.sub(r"\A[ \t]*>[ \t]?", "", line) for line in lines]
        indent = re.sub(r"\A[ \t]*>[ \t]?", "", indent)
    width = len(indent.expandtabs())
    if width and all(not line.strip() or line[:width].strip() == "" for line in lines):
        lines = [line[width:] for line in lines]
    return "\n".join(lines)
