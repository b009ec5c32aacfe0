"""Reads the option that a reply commits to.

In: a reply and the item's options. Out: the one option that the reply commits to. The last declaration wins, unless the
reply doubts it and concludes anew; a letter must stand alone and be an option; words ("a prime number", "I think") are no
letters; negated options are out, and when all but one are, that one is the answer; several options are no answer, nor is
a letter with another option's text ("C (blue)"). Option texts, numbers equal to one, and places `1`, `2`, ... where no
option is a number, are accepted too. Left out on purpose: guessing from likeness between a reply and an option.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from collabsim.item import Answer, ItemView
from collabsim.scorers.choice.cues import choice_declarations, conclusion, second_thoughts
from collabsim.scorers.choice.option_text import plain_text
from collabsim.scorers.choice.phrases import UNCLEAR, PhraseReader, read_options
from collabsim.scorers.reading.declarations import Declaration, first_sentence
from collabsim.scorers.reading.scoring import NO_ANSWER, AnswerScorer, Extraction, declared_by, why_unparsed
from collabsim.scorers.reading.text import readable, squeezed

_ONE_OF_BOXES = re.compile(r"\}\s*(?:or|and|,|/)\s*\\boxed", re.IGNORECASE)
r"""A second box: `\boxed{A} or \boxed{B}`."""


LONGEST_PLAIN = 80

_PLAIN = re.compile(r"(?P<label>(?:\*\*)?Answer: ?|The (?:correct )?answer is )?\(?(?P<letter>[A-Z])\)?\.?(?:\*\*)?")
"""Most replies of obedient models, read at once with the result that the long way gives: `Answer: C`."""


class ChoiceScorer(AnswerScorer):
    """Scores answers that are one option; the canonical value is its letter. Options of equal text are the same."""

    kind = "choice"
    has_options = True
    placeholder = "<letter>"

    def extract(self, text: str, view: ItemView, finish: str = "stop") -> Answer | None:
        """The option that `text` commits to, or None."""
        if plain := _plain_letter(text, view, finish):
            return Answer(plain, plain)
        return self.extraction(text, view, finish).answer

    def extraction(self, text: str, view: ItemView, finish: str = "stop") -> Extraction:
        """`extract` with its reason."""
        if plain := _plain_letter(text, view, finish):
            return Extraction(Answer(plain, plain), f"plain answer {squeezed(text)!r}")
        part = None if finish in NO_ANSWER else readable(text)
        if part is None or not part.strip():
            return Extraction(None, why_unparsed(text, finish))
        last = part.rstrip().rpartition("\n")[2]
        if plain := _plain_letter(last, view, "length"):  # declared, as a cut reply must
            return Extraction(Answer(plain, plain), f"last line {squeezed(last)!r}")
        reader = PhraseReader(read_options(tuple(view.choices.items())))
        letter, reason = _committed(plain_text(part), reader, whole=finish == "stop")
        if letter is None:
            return Extraction(None, why_unparsed(text, finish))
        if letter == UNCLEAR:
            return Extraction(None, f"no single option: {reason}")
        return Extraction(Answer(letter, letter), reason)

    def same(self, a: Answer, b: Answer, view: ItemView) -> bool:
        """Whether two answers are one letter, or letters of options with one text."""
        return bool(a.value == b.value or view.choices[a.value] == view.choices[b.value])

    def gold(self, text: str, view: ItemView) -> Answer | None:
        """A gold letter as an answer; None when it is no option."""
        return Answer(text, text) if text in view.choices else None

    def shown_by(self, golds: Sequence[str], choices: Mapping[str, str], fields: Mapping[str, Any]) -> bool:  # noqa: ARG002
        """Whether there are options."""
        return bool(choices)


def _plain_letter(text: str, view: ItemView, finish: str) -> str | None:
    """The letter of a plain reply; None for all others."""
    plain = _PLAIN.fullmatch(text.strip()) if len(text) < LONGEST_PLAIN and finish not in NO_ANSWER else None
    if plain is None or plain["letter"] not in view.choices or not (plain["label"] or finish == "stop"):
        return None
    return plain["letter"]


def _committed(part: str, reader: PhraseReader, *, whole: bool) -> tuple[str | None, str]:
    """The letter that a reply in plain form takes, and why; without `whole`, only by declaration."""
    for declaration in reversed(choice_declarations(part, reader)):
        letter = _declared(declaration, reader, part)
        if letter is None:
            continue
        reason = declared_by(part, declaration.start)
        doubted = second_thoughts(part, declaration.start + len(declaration.text)) if letter != UNCLEAR else None
        concluded = conclusion(part, reader, doubted) if doubted is not None else None
        return (concluded, f"concluded after {reason}") if concluded else (letter, reason)
    return _mentioned(part.strip(), reader) if whole else (None, "")


def _declared(declaration: Declaration, reader: PhraseReader, part: str) -> str | None:
    if declaration.form == "open box":
        return UNCLEAR
    if declaration.form in ("box", "tag", "marker"):
        if not declaration.text or (declaration.form == "box" and _ONE_OF_BOXES.search(part, 0, declaration.start + 7)):
            return UNCLEAR
        return reader.whole(declaration.text) or reader.lead(declaration.text)
    if declaration.form == "correction":
        letter = reader.lead(declaration.text)
        return reader.only(declaration.text.split("\n", 1)[0]) if letter == UNCLEAR else letter
    if declaration.form == "sentence" and "?" in first_sentence(declaration.text)[1]:
        return None
    return reader.declared(declaration.text, negated=declaration.negated, label=declaration.form == "label")


def _mentioned(reply: str, reader: PhraseReader) -> tuple[str | None, str]:
    """The option of a reply without a declaration, and why: all of it, a conclusion, a bare line, the only mention."""
    if named := reader.whole(reply):
        return named, "the whole reply"
    if concluded := conclusion(reply, reader):
        return concluded, "its conclusion"
    lines = [line.strip() for line in reply.splitlines() if line.strip()]
    if len(lines) > 1:
        bare = {letter for line in (lines[0], lines[-1]) if (letter := reader.whole(line))}
        if bare:
            return (bare.pop() if len(bare) == 1 else UNCLEAR), "a line with nothing else"
    elif opening := reader.opening(reply):
        return opening, "how the reply begins"
    return reader.only(reply), "what it mentions"
