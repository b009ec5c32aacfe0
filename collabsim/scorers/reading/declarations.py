r"""Finds the places where a reply declares its answer: boxes, tags, markers and sentences.

In: the readable part of a reply. Out: its declarations in order of appearance; the last one that can be read outranks
everything else. Forms: `\boxed{...}` (balanced braces), `<answer>...</answer>`, `#### ...`, "Answer: ...",
"the answer is ...", and "wait, it is ..." (a correction). Left out on purpose: what a value is; scorers read that.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from typing import Literal

MOST = 50
"""Declarations of one form that are read, from the end."""

LONGEST_LINE = 2_000
"""Characters of a declaring line that are read."""

Form = Literal["box", "open box", "tag", "marker", "label", "sentence", "correction"]


@dataclass(frozen=True, slots=True)
class Declaration:
    """One place where a text says what its answer is."""

    form: Form
    start: int
    text: str
    """What is declared: all of a box, or the rest of the line (the next one, if the rest is blank)."""
    body: str = ""
    """For tags and labels: everything up to the end of the tag or the text, for answers of several lines."""
    negated: bool = False
    """True after "the answer is not"."""
    end: int = 0
    """Where a box ends; 0 for other forms."""


_BOX = re.compile(r"\\(?:boxed|fbox|framebox)\s*\{")
r"""A box: `\boxed{42}`."""
_BARE_BOX = re.compile(r"\\(?:boxed|fbox)[ \t]*(-?[0-9][0-9.,]*(?<=[0-9])|[A-Za-z]\b)")
r"""A box without braces: `\boxed 42`."""
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
"""A brace, or what a backslash escapes: `{`."""
_TAG = re.compile(r"<answer>(.*?)(?:</answer>|\Z)", re.IGNORECASE | re.DOTALL)
"""Answer tags: `<answer>42</answer>`."""
_MARKER = re.compile(r"####[ \t]*(\S.*)")
"""The mark of GSM8K's solutions: `#### 42`."""

_VERB = (
    r"(?:(?:is|was|are|equals|becomes|remains)(?P<neg1>n't|\s+not\b|\s+never\b)?"
    r"|(?:would|should|must|will|may|might|could|can)(?P<neg2>n't|\s?not)?\s+(?:then\s+|probably\s+)?be"
    r"|ca(?P<neg3>n't)\s+be"
    r"|(?:seems|appears|turns\s+out|works\s+out|comes\s+out|evaluates|ends\s+up)\s+(?:to\s+be|to|being|as)"
    r"|comes\s+to)\b"
)
_ANSWER = re.compile(
    r"\b(?:answers?|ans)\b"
    r"(?:\s+(?:to|for|of|in|here|that|we|i|you|choice|option|letter|number)\b[^.:;?!\n=]{0,80}?)?"
    rf"(?:\s*(?P<label>[:=]|[→⇒]|\s[-–—]\s)|\s+{_VERB}\s*:?)",
    re.IGNORECASE,
)
"""A label or a sentence that declares: `Answer: 42`, `the answer to this is`."""
_BARE_LABEL = re.compile(
    r"(?im)^[ \t]*(?:the\s+)?(?:final\s+|correct\s+)?answer[ \t]*(?:\n|(?=[-$\\]?\d|\([A-Za-z]\)))"
)
"""A heading with the answer below it: `Final answer\n42`."""
_CORRECTION = re.compile(
    r"\b(?:wait|actually|no|sorry|correction|rather|instead)[,.:;! ]+(?:so\s+)?(?:it|that)(?:'s|\s+is|\s+should\s+be)\s+",
    re.IGNORECASE,
)
"""A change of mind: `Wait, it is 5`."""
_BLANK_LEAD = re.compile(
    r"[ \t]*(?:as follows|the following|below|given below)?[ \t]*[:.]?[ \t]*(?:\n\s*)", re.IGNORECASE
)
"""A line's end after which the answer stands on the next line: `as follows:\n`."""


def declarations(text: str) -> list[Declaration]:
    """All declarations of `text`, by position."""
    placed = [*_boxes(text), *_sentences(text)]
    placed += [
        Declaration("tag", match.start(), match[1].strip(), match[1].strip()) for match in last_matches(_TAG, text)
    ]
    placed += [Declaration("marker", match.start(), match[1].strip()) for match in last_matches(_MARKER, text)]
    placed += [
        Declaration("correction", match.start(), rest_of_line(text, match.end())[0])
        for match in last_matches(_CORRECTION, text)
        if text[: match.start()].strip()  # at the very beginning there is nothing to correct: "No, it is not."
    ]
    return sorted(placed, key=lambda declaration: declaration.start)


def last_matches(pattern: re.Pattern[str], text: str, most: int = MOST) -> deque[re.Match[str]]:
    """The last `most` matches; nobody says more in earnest."""
    return deque(pattern.finditer(text), maxlen=most)


def _boxes(text: str) -> list[Declaration]:
    matches = last_matches(_BOX, text)
    closing = _closing_braces(text) if matches else {}
    bare = last_matches(_BARE_BOX, text)
    boxes = [Declaration("box", match.start(), match[1], end=match.end()) for match in bare]
    for match in matches:
        end = closing.get(match.end() - 1)
        if end is None:
            boxes.append(Declaration("open box", match.start(), ""))
        else:
            boxes.append(Declaration("box", match.start(), text[match.end() : end].strip(), end=end + 1))
    return boxes


def _closing_braces(text: str) -> dict[int, int]:
    """Index of each opening brace to that of its closing one; escaped braces are text."""
    closing: dict[int, int] = {}
    opened: list[int] = []
    for match in _BRACE.finditer(text):
        if match[0] == "{":
            opened.append(match.start())
        elif match[0] == "}" and opened:
            closing[opened.pop()] = match.start()
    return closing


def _sentences(text: str) -> list[Declaration]:
    declared = []
    for match in last_matches(_ANSWER, text):
        if match["label"]:
            declared.append(_label(text, match))
        else:
            negated = any(match[name] for name in ("neg1", "neg2", "neg3"))
            declared.append(Declaration("sentence", match.start(), rest_of_line(text, match.end())[0], negated=negated))
    return declared + [_label(text, match) for match in last_matches(_BARE_LABEL, text)]


def _label(text: str, match: re.Match[str]) -> Declaration:
    rest, start = rest_of_line(text, match.end())
    return Declaration("label", match.start(), rest, text[start:].strip())


def rest_of_line(text: str, start: int) -> tuple[str, int]:
    """The rest of the line at `start` and where it begins; the next line that says something, if the rest does not."""
    if lead := _BLANK_LEAD.match(text, start):
        start = lead.end()
    end = text.find("\n", start)
    return text[start : min(len(text) if end < 0 else end, start + LONGEST_LINE)].strip(), start


_SENTENCE_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bapprox)([.!?]+)(?=\s|$)")
"""The end of a sentence: `It is 4. So`. Not the point of `e.g.`"""
_INITIAL = re.compile(r"\b[A-Z]$")
"""A capital whose point ends no sentence: `by J`."""


def first_sentence(text: str, *, initials: bool = False) -> tuple[str, str]:
    """The first sentence of `text` and the mark that ends it. Decimal points and `e.g.` end nothing; with `initials`,
    neither does the dot after a single capital (`J. Austen`).
    """
    for match in _SENTENCE_END.finditer(text):
        head = text[: match.start()]
        if not (initials and match[1] == "." and match.end() < len(text) and _INITIAL.search(head)):
            return head, match[1]
    return text, ""
