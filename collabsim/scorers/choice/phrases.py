"""Options in a phrase: which letters and option texts it names, and which of them it rejects.

In: a phrase of a reply in plain form (`option_text.plain_text`) and the options. Out: a letter, `UNCLEAR` (several options,
or "none of them"), or None (it names nothing). Policies: a letter that is followed at once by the text of another option
("C (blue)") contradicts itself and is `UNCLEAR`; a phrase that rejects every option but one names that one. Left out on
purpose: where in a reply the phrase stands; see `cues.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from collabsim.scorers.choice.options import ENDS, Mention, Options, read_options
from collabsim.scorers.choice.polarity import JOINT, with_states
from collabsim.scorers.reading.declarations import first_sentence

__all__ = ["UNCLEAR", "Mention", "Options", "PhraseReader", "read_options"]

UNCLEAR = "?"
"""Several options where one is asked, or none of them: no answer."""

LONGEST_PHRASE = 600
"""Characters of a declared phrase that are read."""

_FILLER = re.compile(
    r"(?:[\s:=\"'*#>→⇒-]|(?:the|my|is|be|to|it|option|choice|letter|answer|alternative|statement|number|one|that"
    r"|this|in|by|as|given"
    r"|listed|labell?ed|marked|most|thus|so|just|then|correct|right|best|indeed|likely|in fact|of course|\w+ly|therefore"
    r"|it's|i think|i believe|i would say|i'd say|i guess|maybe|perhaps|i choose|i pick|i'll go with"
    r"|i'd go with)\b(?!\s*(?:\)|\Z)))*",
    re.IGNORECASE,
)
"""Words before an option: `the correct option is `."""
_OPENING = " \t\n\"'([{<*"
_NO_ANSWER = re.compile(
    r"\W{0,9}(?:(?:it(?:'s| is)|i think|i'd say)\s+)?(?:(?:none|neither|all|any|both|either|some"
    r"|several)\b(?:\s+of\b|\s*\W*\Z)"
    r"|not\s+(?:given|listed|here|sure|known|among|enough|possible|clear)|no(?:ne)?\s+(?:correct|of|option|answer|choice)"
    r"|unknown|unclear|undetermined|n/a\b|i\s+(?:do\s?n[o']t|cannot|can't|am\s+not|am\s+un)|i'm\s+(?:not|un)"
    r"|(?:it\s+)?can(?:not|'t)\s+be\b"
    r"|(?:do\s?n't|do\s+not)\s+know)",
    re.IGNORECASE,
)
"""A phrase that takes no option: `none of these`."""
_RUN = re.compile(r"\W*([A-Z]{1,26})\W*")
"""Capitals without anything between them, several options: `AC`."""
_LONE = re.compile(r"[^\w+^=\\]*(?:[=→⇒]\s*)?([A-Za-z])[^\w+#^=<]*")
"""A letter alone in a phrase: `(c).`"""
_OR = re.compile(r"\bor\b|/", re.IGNORECASE)
"""What joins two options of which neither is taken: `A or B`."""
_BESIDE = re.compile(r"[)\]]?[ \t]*[(\[]?")
"""What stands between a letter and a bracket: `C (`."""
_BLANKS = re.compile(r"[\s.:)\]-]{0,8}")
"""What may stand between a place and what follows: `2. `."""
_PLACE_ENDS = re.compile(r"[)\]\"'*}>]{0,8}\s*(?:[.,:;!)\n-]|\Z|(?:because|since|as|is|for|due|and|but)\b|[–—(=])")
"""What ends a place: `2 because`."""
_SMALL = re.compile(r"([a-z])(?=[)\]\"'*]{0,8}\s*(?:[.,:;!)\n]|\Z|(?:because|since|as|due|is|but|and|or)\b|[-–—(=]))")
"""A small letter that stands for an option: `c because`."""
_PLACE = re.compile(
    r"\W{0,9}(?:(?:option|choice|number|answer|no\.)\s*)?[^\w+]{0,9}(?<![-.])([0-9]{1,2})(?![\w%/^]|[.,:][0-9]"
    r"|\s*(?:,|and\b|or\b|&|\+|-|to\b)\s*[0-9])",
    re.IGNORECASE,
)
"""An option by its place: `option 2`."""
_BARE_LETTER = re.compile(r"[(\[]?([A-Z])[)\]]?(?=\W|\Z)")
"""A letter after the number of a line: `(C)`."""
_LABEL_END = re.compile(
    r"[)\]}>\"'*]{0,8}\s*(?:[.,:;!)\n-]|\Z|(?:because|since|as|for|due|given|but|and|or)\b|[–—(\[/=])", re.IGNORECASE
)
"""What ends a letter: `C, since`."""
_BUT = re.compile(r"\bbut\b|\binstead\b|[,;.:—-]+\s*(?:it|this|that)(?:'s|\s+is)\b(?!\s*(?:not|n't))", re.IGNORECASE)
"""Where a phrase turns to another option: `not B but C`."""


class PhraseReader:
    """Reads phrases against one item's options."""

    def __init__(self, options: Options) -> None:
        self.options = options

    def mentions(self, phrase: str) -> list[Mention]:
        """What `phrase` names, in order, each named, rejected, affirmed, asked or torn."""
        return with_states(phrase, self.options.mentions(phrase))

    def lead(self, phrase: str) -> str | None:
        """The option that `phrase` begins with, after words such as "option" or "clearly"."""
        phrase = phrase[:LONGEST_PHRASE]
        mentions = self.mentions(phrase)
        filler = _FILLER.match(phrase)
        for start in (0, filler.end() if filler else 0):
            at = start + len(phrase[start:]) - len(phrase[start:].lstrip(_OPENING))
            first = next((k for k, mention in enumerate(mentions) if start <= mention.start <= at < mention.end), None)
            if first is not None:
                return self._group(phrase, mentions, first)
            leading = self.options.at(phrase, at) or self._small(phrase, at)
            if leading:
                return self._group(phrase, [leading, *(m for m in mentions if m.start >= leading.end)], 0)
        return None

    def _small(self, phrase: str, at: int) -> Mention | None:
        """A small letter that stands for an option: `c`, `c.`, `c because`; no word (`a prime number`)."""
        small = _SMALL.match(phrase, at)
        if small is None or small[1].upper() not in self.options.texts:
            return None
        return Mention(small[1].upper(), at, small.end(1))

    def _group(self, phrase: str, mentions: Sequence[Mention], first: int) -> str | None:
        """The letter of `mentions[first]` and what is joined to it ("A or B"), if they are one option."""
        head = mentions[first]
        if head.state in ("rejected", "asked"):
            return None
        if head.state == "torn":
            return UNCLEAR
        group = [head]
        for mention in mentions[first + 1 :]:
            beside = _BESIDE.fullmatch(phrase, group[-1].end, mention.start) and ENDS.match(phrase, mention.end)
            if not beside and not JOINT.fullmatch(phrase, group[-1].end, mention.start):
                break
            if mention.state != "rejected":
                group.append(mention)
            elif group[-1] is head:
                break
        either = any(_OR.search(phrase, a.end, b.start) for a, b in pairwise(group))
        joint = JOINT.match(phrase, group[-1].end)
        short = self.options.at(phrase, joint.end()) if joint else None
        if short and ENDS.match(phrase, short.end) and all(short.start != mention.start for mention in mentions):
            group.append(short)
            either = either or (joint is not None and bool(_OR.search(joint[0])))
        return self._one_of([mention.letter for mention in group], together=not either)

    def _one_of(self, letters: Sequence[str], *, together: bool = True) -> str | None:
        """The one option that `letters` are: equal texts are one, and so is an option that names them all."""
        if len({self.options.first_equal(letter) for letter in letters}) <= 1:
            return letters[0] if letters else None
        return self.options.joint.get(frozenset(letters), UNCLEAR) if together else UNCLEAR

    def only(self, phrase: str, *, negated: bool = False) -> str | None:
        """The option that is affirmed, else the only one that is not rejected, else the only one that is left."""
        mentions = self.mentions(phrase)
        if any(mention.state == "torn" for mention in mentions) and len(mentions) == 1:
            return UNCLEAR
        but = _BUT.search(phrase) if negated else None
        turn = (but.start() if but else len(phrase)) if negated else 0
        for state in ("affirmed", "named"):
            meant = _after_doubt(phrase, [m for m in mentions if m.state == state and m.start >= turn])
            if meant:
                letters = list(dict.fromkeys(mention.letter for mention in meant))
                return self._one_of(letters, together=not _OR.search(phrase))
        out = {m.letter for m in mentions if m.state == "rejected" or m.start < turn}
        left = [letter for letter in self.options.texts if letter not in out]
        return left[0] if out and len(left) == 1 else None

    def whole(self, text: str) -> str | None:
        """The option that is all of `text`: `C`, `(C)`, `C. blue`, `blue`, a number equal to one option, a place."""
        if len(text) > LONGEST_PHRASE:
            return None
        if (letter := _LONE.fullmatch(text)) and letter[1].upper() in self.options.texts:
            return letter[1].upper()
        if equal := self.options.equal(text):
            return equal
        mentions = self.mentions(text)
        if mentions and not text[: mentions[0].start].strip(_OPENING + ">#-") and mentions[0].state != "rejected":
            if not text[mentions[0].end :].strip(" \t\n.,;:!)]}>\"'*"):
                return UNCLEAR if mentions[0].state == "torn" else mentions[0].letter
            listed = all(JOINT.fullmatch(text, a.end, b.start) for a, b in pairwise(mentions))
            if (
                listed
                and len(mentions) > 1
                and all(m.state != "rejected" for m in mentions)
                and not text[mentions[-1].end :].strip(" \t\n.,;:!)]}\"'")
            ):
                return self._one_of([mention.letter for mention in mentions], together=not _OR.search(text))
        return self.place(text, whole=True)

    def place(self, text: str, *, whole: bool = False) -> str | None:
        """The option that a place such as `2` or `option 2` names, where no option is a number."""
        match = None if self.options.numeric else _PLACE.match(text)
        if match is None or (whole and text[match.end() :].strip(" \t\n.,;:!)]}>\"'*")):
            return None
        blanks = _BLANKS.match(text, match.end())
        start = blanks.end() if blanks else match.end()
        if listed := self._bare_letter(text, start):
            return listed  # a numbered line: `1. C`
        rest = self.options.at(text, start)
        if not rest and not _PLACE_ENDS.match(text, match.end()):
            return None
        letters = list(self.options.texts)
        number = int(match[1])
        return letters[number - 1] if 1 <= number <= len(letters) else None

    def _bare_letter(self, text: str, start: int) -> str | None:
        letter = _BARE_LETTER.match(text, start)
        alone = letter is not None and letter[1] in self.options.texts and text[start - 1 : start].isspace()
        return letter[1] if letter is not None and alone else None

    def declared(self, phrase: str, *, negated: bool = False, label: bool = False) -> str | None:
        """The option that a declared phrase names: what it begins with, else the only one in its first sentence."""
        phrase = phrase[:LONGEST_PHRASE]
        sentence = first_sentence(phrase)[0]
        if negated:
            return self.only(sentence, negated=True)
        letter = self.lead(phrase) or self.place(phrase) or self.whole(sentence) or self.place(sentence)
        if letter:
            return letter
        if _NO_ANSWER.match(phrase):
            return (self.only(phrase) if phrase[:2] in ("I ", "I'") else None) or UNCLEAR
        if label and self._is_other_letter(sentence):
            return UNCLEAR
        return self.only(sentence)

    def _is_other_letter(self, sentence: str) -> bool:
        """Whether all of `sentence` is a letter that no option has, or several of the options' letters in a row."""
        run = _RUN.fullmatch(sentence)
        if run is None:
            return False
        return len(run[1]) == 1 or (set(run[1]) <= set(self.options.texts) and len(set(run[1])) == len(run[1]))

    def opening(self, reply: str) -> str | None:
        """The option that a reply without a declaration begins with as an answer: `C, because`, `C. Green`, `green`."""
        letter = self.lead(reply)
        if letter in (None, UNCLEAR):
            return letter
        mentions = self.mentions(reply[:LONGEST_PHRASE])
        first = mentions[0] if mentions else None
        if first is None or first.start > 40:
            return letter
        later = [m for m in mentions[1:] if m.state in ("named", "affirmed") and m.letter != first.letter]
        if first.state == "affirmed" or not later or _LABEL_END.match(reply, first.end):
            return letter
        return None


def _after_doubt(phrase: str, mentions: Sequence[Mention]) -> Sequence[Mention]:
    """What is named after the last "B or C", if anything is: "B or C? C."; else all `mentions`."""
    for k in range(len(mentions) - 1, 0, -1):
        joint = JOINT.fullmatch(phrase, mentions[k - 1].end, mentions[k].start)
        if joint and _OR.search(joint[0]):
            return mentions[k + 1 :] or mentions
    return mentions
