"""Reading of prompts by simulated models: others' answers, its own last one, and whether something else is asked.

In: the text of a conversation. Out: declared answers (`Answer: X`, `the answer is X`), numbered options, numbered quoted
answers to compare, whether a confidence or the continuation of a text is asked for. In a
quoted block (lines that start with `> `) only the last declaration counts, since a block is one speaker; outside of
quotes every declaration counts. Left out on purpose: any understanding of prose.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from collabsim.item import Item
from collabsim.models.simulation.answer_key import Match
from collabsim.models.simulation.distractors import right_answer
from collabsim.request import Messages

# Not after a quotation mark or backtick: there the words are an instruction ("end with `Answer: X`").
_DECLARATION = re.compile(
    r"(?<![`\"'“])\banswer[*_ ]*(?P<how>:|\bis\b:?)[*_ ]*(?P<what>[^\n]+)(?=(?P<more>(?:\n[^\n]*\S[^\n]*)*))",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?;,](?:\s|$)")
_PLACEHOLDER = re.compile(  # what stands for an answer in an instruction
    r"<[^<>]*>\Z|…|\.\.\.|X\Z|(?i:not\b)"
    r"|[\[{(]?(?i:(?:your|the)\b.*\b(?:answer|letter|number)|answer|letter|number)[\]})]?\Z"
)
_OPTION = re.compile(r"(?m)^[ \t]*(\d+)[.):][ \t]+(\S.*)$")
_ASKS_FOR_NUMBER = re.compile(
    r"\b(?:reply|answer|respond|return|output|give|write|state|choose|pick|name|select)\b[^.\n]{0,60}\bnumbers?\b",
    re.IGNORECASE,
)

_LABEL = re.compile(r"\w+ (\d+):\Z")
_ASKS_FOR_SEVERAL = re.compile(r"\bnumbers\b", re.IGNORECASE)
_ASKS_FOR_CONFIDENCE = re.compile(r"\bhow (?:likely|sure|certain|confident)\b.*\b0 to 100\b", re.IGNORECASE | re.DOTALL)
_ASKS_TO_GO_ON = re.compile(r"\b(?:continue|go on|carry on)\b.{0,60}\bstops?\b", re.IGNORECASE | re.DOTALL)


def declared(text: str, item: Item) -> list[str]:
    """The answers to `item` that a text declares, in order.

    Letters when the item has choices (anything else is then dropped). An answer is a line, but for items whose gold has
    several: then it goes on to the next blank one.
    """
    choices = item.view.choices
    several_lines = "\n" in right_answer(item)
    answers = []
    for declaration in _DECLARATION.finditer(text):
        what = declaration["what"]
        if declaration["how"] == ":":
            what += declaration["more"] if several_lines else ""
        else:
            what = _SENTENCE_END.split(what, maxsplit=1)[0]
        what = what.strip(" \t*_").removesuffix(".").strip(" \t*_")
        answer = _option_letter(what, choices) if choices else what
        if answer and not _PLACEHOLDER.match(what):
            answers.append(answer)
    return answers


def others_answers(match: Match, messages: Messages) -> list[str]:
    """Answers of others in the turn that asks the item (outside the question) and in the user's turns after it."""
    later = [message.content for message in messages[match.turn + 1 :] if message.role == "user"]
    answers: list[str] = []
    for quoted, block in _blocks("\n\n".join([match.rest, *later])):
        read = declared(block, match.item)
        answers += read[-1:] if quoted else read
    return answers


def own_answer(match: Match, messages: Messages) -> str | None:
    """The last answer that the model itself declared in this conversation, after the item was asked."""
    for message in reversed(messages[match.turn + 1 :]):
        if message.role == "assistant":
            answers = declared(message.content, match.item)
            return answers[-1] if answers else None
    return None


def numbered_options(text: str) -> list[tuple[int, str]]:
    """(number, text) of each option when a text lists options 1..k (or 0..k-1) and asks for a number, else nothing."""
    plain = _unquoted(text)
    options = [(int(number), option.strip()) for number, option in _OPTION.findall(plain)]
    numbers = [number for number, _ in options]
    in_order = numbers in (list(range(len(numbers))), list(range(1, len(numbers) + 1)))
    asked = _ASKS_FOR_NUMBER.search(_OPTION.sub("", plain))
    return options if options and in_order and asked else []


def numbered_answers(text: str, item: Item) -> list[tuple[int, str | None]]:
    """(number, declared answer) of each quoted block under a label `Answer 2:`, when a text asks for numbers.

    Nothing when it asks for none, or when fewer than two such blocks stand in it.
    """
    numbered: list[tuple[int, str | None]] = []
    before = ""
    for quoted, block in _blocks(text):
        label = _LABEL.search(before.rstrip()) if quoted else None
        if label:
            numbered.append((int(label[1]), next(reversed(declared(block, item)), None)))
        before = block
    return numbered if len(numbered) > 1 and _ASKS_FOR_NUMBER.search(_unquoted(text)) else []


def asks_for_several(text: str) -> bool:
    """Whether a text that lists numbered answers wants all their numbers, rather than one."""
    return bool(_ASKS_FOR_SEVERAL.search(_unquoted(text)))


def asks_for_confidence(messages: Messages) -> bool:
    """Whether the last turn asks how sure the model is of the answer it gave in the turn before, from 0 to 100."""
    return _follows_own_turn(messages) and bool(_ASKS_FOR_CONFIDENCE.search(messages[-1].content))


def asks_to_go_on(messages: Messages) -> bool:
    """Whether the last turn asks to continue the text of the turn before where it stops."""
    return _follows_own_turn(messages) and bool(_ASKS_TO_GO_ON.search(messages[-1].content))


def _follows_own_turn(messages: Messages) -> bool:
    return [message.role for message in messages[-2:]] == ["assistant", "user"]


def fitting_options(options: Iterable[tuple[int, str]], topic: str) -> list[int]:
    """Numbers of the options that fit a topic best.

    Those that name it; where some give a share for it (`80% of algebra`), those with the highest. An item without a
    topic is matched by the first share that an option gives, whatever it is of.
    """
    shares: dict[int, float] = {}
    for number, text in options:
        share = re.search(
            rf"(\d+(?:\.\d+)?) ?%(?: \w+)? {re.escape(topic)}" if topic else r"(\d+(?:\.\d+)?) ?%", text, re.I
        )
        if share or (topic and topic.casefold() in text.casefold()):
            shares[number] = float(share[1]) if share else 0.0
    return [number for number, share in shares.items() if share == max(shares.values())]


def _blocks(text: str) -> Iterator[tuple[bool, str]]:
    """Runs of quoted and of plain lines: (is quoted, the lines without their quote marks)."""
    lines: list[str] = []
    quoted = False
    for line in text.splitlines():
        marked = line.lstrip().startswith(">")
        if marked != quoted and lines:
            yield quoted, "\n".join(lines)
            lines = []
        quoted = marked
        lines.append(line.lstrip().removeprefix(">").removeprefix(" ") if marked else line)
    if lines:
        yield quoted, "\n".join(lines)


def _unquoted(text: str) -> str:
    return "\n".join(block for quoted, block in _blocks(text) if not quoted)


def _option_letter(text: str, choices: Mapping[str, str]) -> str | None:
    """The letter that a declared answer names, by itself (`C`, `(C)`, `C. blue`) or by option text, or None."""
    lead = re.match(r"\(?([A-Z])\b\)?", text.strip(), re.IGNORECASE)
    if lead and lead[1].upper() in choices:
        return lead[1].upper()
    named = [letter for letter, option in choices.items() if option.strip().casefold() == text.strip().casefold()]
    return named[0] if len(named) == 1 else None
