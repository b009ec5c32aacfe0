"""Reads the program that a reply commits to.

In: a reply, the name it must define, and the prompt whose function it may only continue. Out: the program. Looked for in
order: fenced blocks that define the name (the last that is more than a signature, together with the blocks it takes names
from), fenced or bare continuations of the prompt, code without fences. Left out on purpose: running anything.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from collabsim.scorers.code.fences import Block, blocks
from collabsim.scorers.code.python_source import defined, is_stub, longest_sound, needed, open_prompt, parsed

_CODE_LINE = re.compile(
    r"(?:from\s+[\w.]+\s+import\b|import\s+\w|(?:async\s+)?def\s+\w|class\s+\w|@\w|\w+\s*(?::[^=]+)?=[^=])"
)
"""A line that is code without a fence: `import math`."""
MOST_STARTS = 20
"""Lines at which bare code is looked for."""


@dataclass(frozen=True, slots=True)
class Program:
    """The program of a reply."""

    source: str
    truncated: bool = False
    """Whether the reply was cut inside it."""


def program_in(text: str, entry_point: str | None, prompt: str = "", *, cut: bool = False) -> Program | None:
    """The program that `text` commits to; None when it holds none. `cut` says that the reply ended at its length limit."""
    fenced = [_as_far_as_sound(block, cut=cut) for block in blocks(text) if block.may_be_python]
    if cut:  # an unfinished attempt declares nothing; one before it may
        fenced = [block for block in fenced if block.closed or parsed(block.code) is not None]
    candidate = _defining(fenced, entry_point) or _continuing(fenced, entry_point, prompt)
    if candidate is None:
        candidate = _any_python(fenced) if blocks(text) else _bare(text, entry_point, prompt)
    if candidate is None:
        return None
    source, closed = candidate
    return Program(source, cut and not closed)


def _as_far_as_sound(block: Block, *, cut: bool) -> Block:
    """An open block without the prose that may follow its code."""
    if block.closed or cut or parsed(block.code) is not None:
        return block
    return Block(block.tag, longest_sound(block.code) or block.code, False)


Candidate = tuple[str, bool]
"""A source, and whether its end was seen."""


def _defining(fenced: list[Block], entry_point: str | None) -> Candidate | None:
    """The last block that defines the name, helped by others."""
    if entry_point is None:
        candidates = [block for block in fenced if any(map(str.isidentifier, _functions(block.code)))]
    else:
        candidates = [block for block in fenced if _defines(block.code, entry_point)]
    whole = [block for block in candidates if entry_point is None or not is_stub(block.code, entry_point)]
    if not candidates:
        return None
    chosen = (whole or candidates)[-1]
    return _with_helpers(chosen, fenced, entry_point), chosen.closed


def _defines(code: str, name: str) -> bool:
    """Whether code binds the name; for code that does not parse, whether it says so."""
    if parsed(code) is not None:
        return name in defined(code)
    return bool(re.search(rf"(?m)^(?:async\s+)?(?:def|class)\s+{re.escape(name)}\b", code))


def _functions(code: str) -> list[str]:
    return re.findall(r"(?m)^(?:async\s+)?(?:def|class)\s+(\w+)", code)


def _with_helpers(chosen: Block, fenced: list[Block], entry_point: str | None) -> str:
    """The chosen block after those other blocks that bind names which it needs."""
    others = [block for block in fenced if block is not chosen and parsed(block.code) is not None]
    others = [block for block in others if entry_point is None or entry_point not in defined(block.code)]
    wanted, taken = set(needed(chosen.code)), set()
    changed = True
    while changed:
        changed = False
        for at, block in enumerate(others):
            if at not in taken and defined(block.code) & wanted:
                taken.add(at)
                wanted |= needed(block.code)
                changed = True
    return "\n\n".join([*(others[at].code for at in sorted(taken)), chosen.code])


def _continuing(fenced: list[Block], entry_point: str | None, prompt: str) -> Candidate | None:
    """The last block that makes the prompt's open function whole."""
    start = open_prompt(prompt)
    for block in reversed(fenced) if start else ():
        source = _continued(start, block.code, entry_point)
        if source:
            return source, block.closed
    return None


def _continued(start: str, body: str, entry_point: str | None) -> str | None:
    """The prompt's code with a body, at whatever depth that is written; None when nothing sound comes of it."""
    first = next((line for line in body.splitlines() if line.strip()), "")
    if not first or re.match(r"(?:async\s+)?(?:def|class)\s", first):
        return None
    sources = (start + shaped.rstrip() + "\n" for shaped in _shapes(body, first))
    return next((source for source in sources if _is_whole(source, entry_point)), None)


def _is_whole(source: str, entry_point: str | None) -> bool:
    if parsed(source) is None:
        return False
    return entry_point is None or (entry_point in defined(source) and not is_stub(source, entry_point))


def _shapes(body: str, first: str) -> Iterator[str]:
    if first[0] in " \t":
        yield body
        yield textwrap.indent(textwrap.dedent(body), "    ")
    else:
        yield "    " + body.lstrip("\n")  # only the first line lost its margin
        yield textwrap.indent(body, "    ")


def _bare(text: str, entry_point: str | None, prompt: str) -> Candidate | None:
    """Code without any fence: from the first line of code on, or a continuation of the prompt. Its end is never sure."""
    lines = text.splitlines()
    for start in [at for at, line in enumerate(lines) if _CODE_LINE.match(line)][:MOST_STARTS]:
        source = longest_sound("\n".join(lines[start:]))
        if entry_point in defined(source) if entry_point else _functions(source):
            return source, False
    opened = open_prompt(prompt)
    if not opened or not _is_body(lines):
        return None
    margins = [at for at, line in enumerate(lines) if at and line.strip() and line[0] not in " \t"]
    for end in (len(lines), *margins[::-1][:MOST_STARTS]):
        source = _continued(opened, "\n".join(lines[:end]), entry_point) or ""
        if source:
            return source, False
    return None


def _is_body(lines: list[str]) -> bool:
    """Whether lines are meant as a body: indented, or statements with a mark of code in them (not prose)."""
    first = next((line for line in lines if line.strip()), "x")
    return first[0] in " \t" or bool(re.match(r"(?:return|if|for|while|with|try|raise)\b|\w+\s*[=(\[.]", first))


def _any_python(fenced: list[Block]) -> Candidate | None:
    """An attempt under another name, or one that does not parse: the last block that says it is Python, or could be."""
    attempts = [block for block in fenced if block.code.strip() and (block.is_python or _functions(block.code))]
    return (attempts[-1].code, attempts[-1].closed) if attempts else None
