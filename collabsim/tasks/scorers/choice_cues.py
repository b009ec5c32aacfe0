"""Where a reply says which option it takes.

In: the readable part of a reply and the options. Out: declarations by position: those of every kind of task
(`declarations.py`) and those of choices ("the best option is", "I go with", "C is correct"). Left out on purpose: what
the declared phrase names; see `choice_reading.py`.
"""

from __future__ import annotations

import re

from collabsim.tasks.scorers.choice_reading import Options
from collabsim.tasks.scorers.declarations import Declaration, declarations, last_matches, rest_of_line

_CHOICE_IS = re.compile(
    r"\b(?:choice|option|pick|selection|one)\s*(?::|\s(?:is|was|would be|should be|must be|seems to be|has to be)"
    r"(?P<negated>n't|\s+not\b)?)(?=\s)",
    re.IGNORECASE,
)
_TAKE = re.compile(
    r"\b(?:go(?:ing)? with|choose|chose|choosing|pick|picked|select|selected|opt for|settle on|vote for|answer with"
    r"|(?:I'd|I would) (?:say|answer|guess))(?=[\s:])",
    re.IGNORECASE,
)
_ANSWER_LETTER = re.compile(r"\b[Aa]nswer\s+(?=\(?[A-Z]\)?(?:[\s.,:;!]|\Z))")
_IS_RIGHT = re.compile(
    r"[)\]\"']?\s+(?:is|seems|must be|has to be|would be|looks|appears)\s+"
    r"(?:(?:to be|clearly|definitely|indeed|most likely|probably)\s+)*"
    r"(?:the\s+)?(?:only\s+|most\s+)?(?:correct|right|best|true|answer)\b(?!\s*\?)[^.!\n?]*(?P<question>\?)?",
    re.IGNORECASE,
)
_SO = re.compile(
    r"(?:\b(?:so|thus|therefore|hence)\b|→|⇒|=>)[,:]?\s+(?:(?:it|this|that)(?:'s| is| must be| should be| has to be)\s+)?"
    r"(?:the\s+)?(?:option\s+|choice\s+|answer\s+)?"
    r"|\b(?:it|this)(?: must be|'s| is| should be| has to be)\s+(?:option\s+|choice\s+)?",
    re.IGNORECASE,
)


def choice_declarations(text: str, options: Options) -> list[Declaration]:
    """All declarations of a choice in `text`, by position."""
    found = declarations(text)
    for match in last_matches(_CHOICE_IS, text):
        negated = match["negated"] is not None
        found.append(Declaration("sentence", match.start(), rest_of_line(text, match.end())[0], negated=negated))
    for pattern in (_TAKE, _ANSWER_LETTER):
        for match in last_matches(pattern, text):
            found.append(Declaration("sentence", match.start(), rest_of_line(text, match.end())[0]))
    for token in options.tokens(text):
        right = None if token.negated else _IS_RIGHT.match(text, token.end)
        if right and not right["question"]:
            found.append(Declaration("correction", token.start, text[token.start : token.end]))
    return sorted(found, key=lambda declaration: declaration.start)


def conclusion(text: str, options: Options) -> str | None:
    """The letter of the last "so it is C"; None without one."""
    for match in reversed(last_matches(_SO, text)):
        found = options.direct(rest_of_line(text, match.end())[0])
        if found:
            return found
    return None
