"""Options in a phrase: which letters and option texts it names, and which of them it rejects.

In: a phrase of a reply and the options. Out: a letter, `UNCLEAR` (several options), or None. Left out on purpose: where in
a reply the phrase stands; see `choice_cues.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from collabsim.tasks.scorers.declarations import first_sentence, last_matches
from collabsim.tasks.scorers.exact_scorer import canonical_text
from collabsim.tasks.scorers.text import squeezed

MOST_LETTERS = 300
"""Letters of one text that are read, from the end."""

_NEXT_WORD = re.compile(r"\s+([A-Za-z']+)")
_NAMED = re.compile(r"\b(?:option|choice|letter|answer)\s*\Z", re.IGNORECASE)

UNCLEAR = "?"
"""Several options where one is asked: no answer."""

_AFTER_ARTICLE_LIKE = [
    "is",
    "was",
    "because",
    "since",
    "as",
    "and",
    "or",
    "but",
    "for",
    "with",
    "which",
    "would",
    "seems",
    "looks",
    "must",
    "should",
    "has",
    "due",
    "given",
    "based",
    "by",
    "not",
    "nor",
    "rather",
    "over",
    "instead",
    "are",
    "appears",
    "matches",
    "fits",
    "makes",
    "describes",
    "represents",
    "wins",
    "correctly",
    "best",
]
_FILLER = re.compile(
    r"(?:[\s:=\"'→⇒-]|(?:the|my|is|be|to|option|choice|letter|answer|alternative|clearly|definitely|probably|likely|most|therefore"
    r"|thus|so|simply|just|then|correct|right|best|it's|it is)\b(?!\s*(?:\)|\Z)))*",
    re.IGNORECASE,
)
_REJECTS_NEXT = re.compile(
    r"(?:\bnot|n't|\bneither|\bnor|\brather than|\binstead of|\bexcept(?:\s+for)?|\bunlike|\beliminat\w+|\bexclud\w+"
    r"|\brul(?:e|es|ed|ing) out|\bdiscard\w*)\s+(?:(?:option|choice|answer|letter|be|the|either|both|it)\s+)*[(\[\"']?\Z",
    re.IGNORECASE,
)
_REJECTED = re.compile(
    r"[)\]\"']?\s*(?:is|are|was|were|seems?|looks?|can|must|would|could|should)(?:n't\b|\s?not\b|\s+(?:\w+\s+)?"
    r"(?:wrong|false|incorrect|impossible|out|eliminated|excluded)\b)",
    re.IGNORECASE,
)
_JOINT = re.compile(
    r"[)\]\"'.]?\s*(?:,\s*(?:and|or)?|/|&|\band/or\b|\band\b|\bor\b|\bnor\b)\s*(?:option\s+|choice\s+)?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Token:
    """A letter that stands alone in a phrase."""

    letter: str
    start: int
    end: int
    negated: bool


@dataclass(frozen=True)
class Options:
    """The options of one item, ready for reading."""

    texts: Mapping[str, object]
    """Letter to canonical text."""
    letters: re.Pattern[str]
    numeric: bool
    """True when some option is a number, so that a digit names an option's text and not its place."""

    def tokens(self, phrase: str) -> list[Token]:
        """Letters that stand alone in `phrase`: bracketed, or capital and no word (`A`, `I`) of a sentence."""
        spans = [
            (match, (match["open"] or match["capital"] or match["half"]).upper())
            for match in last_matches(self.letters, phrase, MOST_LETTERS)
        ]
        spans = [(match, letter) for match, letter in spans if match["capital"] is None or not _is_word(phrase, match)]
        rejected = [
            bool(
                _REJECTS_NEXT.search(phrase[max(0, match.start() - 60) : match.start()])
                or _REJECTED.match(phrase, match.end())
            )
            for match, _ in spans
        ]
        self._spread(phrase, [match for match, _ in spans], rejected)
        return [
            Token(letter, match.start(), match.end(), negated)
            for (match, letter), negated in zip(spans, rejected, strict=True)
        ]

    @staticmethod
    def _spread(phrase: str, spans: list[re.Match[str]], rejected: list[bool]) -> None:
        """Rejection of one of several joined letters holds for all: `neither A nor C`, `A and C are wrong`."""
        for i in range(len(spans) - 1):
            joint = _JOINT.fullmatch(phrase, spans[i].end(), spans[i + 1].start())
            if joint and rejected[i] and re.search("or|nor|and|&|/", joint[0]):
                rejected[i + 1] = True
        for i in range(len(spans) - 2, -1, -1):
            joint = _JOINT.fullmatch(phrase, spans[i].end(), spans[i + 1].start())
            if joint and _REJECTED.match(phrase, spans[i + 1].end()):
                rejected[i] = rejected[i] or rejected[i + 1]

    def direct(self, phrase: str) -> str | None:
        """The option that `phrase` begins with: an option's text, or a letter not joined to another."""
        phrase = phrase[_FILLER.match(phrase).end() :] if not self._begins(phrase) else phrase  # type: ignore[union-attr]
        text = self._text_at_start(phrase)
        token = self._letter_at_start(phrase)
        if token and not (text and len(text[1]) > token.end + 1 and text[0] != token.letter):
            others = [other for other in self.tokens(phrase[token.end :]) if not other.negated]
            joint = _JOINT.match(phrase, token.end)
            joined = joint and any(
                token.end + other.start == joint.end() and other.letter != token.letter for other in others
            )
            return UNCLEAR if joined else token.letter
        return text[0] if text else None

    def _begins(self, phrase: str) -> bool:
        return bool(self._letter_at_start(phrase) or self._text_at_start(phrase))

    def _letter_at_start(self, phrase: str) -> Token | None:
        tokens = [token for token in self.tokens(phrase) if not phrase[: token.start].strip(" \"'")]
        if tokens:
            return None if tokens[0].negated else tokens[0]
        lower = re.match(r"\s*([a-z])(?=\s*(?:[.,:;)!]\s|[.,:;)!]?\s*\Z))", phrase)
        if lower and lower[1].upper() in self.texts:
            return Token(lower[1].upper(), lower.start(1), lower.end(1), False)
        return None

    def _text_at_start(self, phrase: str) -> tuple[str, str] | None:
        """Letter and words of the longest option text that `phrase` begins with."""
        words = squeezed(phrase).casefold().lstrip("\"'([<")
        found = [
            (letter, text)
            for letter, text in self.texts.items()
            if isinstance(text, str)
            and text
            and words.startswith(text)
            and not words[len(text) : len(text) + 1].isalnum()
        ]
        return max(found, key=lambda option: len(option[1]), default=None)

    def whole(self, text: str) -> str | None:
        """The option that is all of `text`: `C`, `(C)`, `C. blue`, `blue`, a number equal to one option."""
        value = canonical_text(text)
        equal = [letter for letter, option in self.texts.items() if option == value]
        if len(equal) > 1:
            return equal[0]
        letter = re.fullmatch(r"\W*([A-Za-z])\b\W*", text)
        if letter and letter[1].upper() in self.texts:
            return letter[1].upper()
        if equal:
            return equal[0]
        labelled = re.match(r"[(\[\"']?([A-Z])(?:[)\]\"']*[.:)]+|[)\]])\s*\S", text)
        if labelled and labelled[1] in self.texts:
            return labelled[1]
        tokens = {token.letter for token in self.tokens(text) if not token.negated}
        if len(tokens) > 1 and re.fullmatch(
            r"[\s(\[]*[A-Z](?:[)\]]?\s*(?:,|/|&|and|or)\s*[(\[]?[A-Z])+[)\].\s]*", text
        ):
            return UNCLEAR
        return self._place(text)

    def _place(self, text: str) -> str | None:
        place = re.fullmatch(r"\W*([1-9][0-9]?)\W*", text)
        if place is None or self.numeric or int(place[1]) > len(self.texts):
            return None
        return list(self.texts)[int(place[1]) - 1]

    def phrase(self, phrase: str, *, negated: bool = False) -> str | None:
        """The option that a declared phrase names: what it begins with, else the only one that it does not reject."""
        if not negated:
            sentence = first_sentence(phrase)[0]
            found = self.direct(phrase) or self.whole(sentence) or self._place_first(sentence)
            if found:
                return found
        sentence = first_sentence(phrase)[0]
        tokens = self.tokens(f"not {sentence}" if negated else sentence)
        named = dict.fromkeys(token.letter for token in tokens if not token.negated)
        if named:
            return next(iter(named)) if len(named) == 1 else UNCLEAR
        return None if tokens else self._only_text(sentence, negated=negated)

    def _place_first(self, sentence: str) -> str | None:
        place = re.match(r"\W*(?:option|choice|number)?\s*([1-9])(?![\w.,%/])", sentence, re.IGNORECASE)
        return self._place(place[1]) if place else None

    def only_mention(self, reply: str) -> str | None:
        """The only option that a whole reply names and does not reject, by letter or by text."""
        tokens = self.tokens(reply)
        named = {token.letter for token in tokens if not token.negated}
        if named:
            return named.pop() if len(named) == 1 else UNCLEAR
        return None if tokens else self._only_text(reply, negated=False)

    def _only_text(self, phrase: str, *, negated: bool) -> str | None:
        """The only option whose text stands in `phrase` unrejected; texts of one or two characters do not count."""
        words = ("not " if negated else "") + squeezed(phrase).casefold()
        named: dict[str, str] = {}
        for letter, text in sorted(self.texts.items(), key=lambda option: -len(str(option[1]))):
            if not isinstance(text, str) or len(text) < 3:
                continue
            for match in re.finditer(rf"(?<!\w){re.escape(text)}(?!\w)", words):
                if not _REJECTS_NEXT.search(words[: match.start()]) and not _REJECTED.match(words, match.end()):
                    named.setdefault(text, letter)
            words = re.sub(rf"(?<!\w){re.escape(text)}(?!\w)", "_", words)
        if len(named) > 1:
            return UNCLEAR
        return next(iter(named.values()), None)


def _is_word(phrase: str, match: re.Match[str]) -> bool:
    """Whether a bare capital is the article `A` or the pronoun `I` of a sentence."""
    after = _NEXT_WORD.match(phrase, match.end())
    if after is None or match["capital"] not in "AI":
        return False
    if _NAMED.search(phrase[max(0, match.start() - 12) : match.start()]):
        return False
    return match["capital"] == "I" or after[1].casefold() not in _AFTER_ARTICLE_LIKE


@lru_cache(maxsize=4096)
def read_options(choices: tuple[tuple[str, str], ...]) -> Options:
    """The options of an item, given as (letter, text) pairs."""
    texts = {letter: canonical_text(text) for letter, text in choices}
    big = "".join(texts) or "A"
    letters = re.compile(
        rf"(?<![\w'’\\+.-])(?:[(\[](?P<open>[{big}{big.lower()}])[)\]]"
        rf"|(?P<capital>[{big}])(?![\w+]|['’]\w|-\w|\.\w)|(?P<half>[{big.lower()}])(?=\)))"
    )
    return Options(texts, letters, any(not isinstance(text, str) for text in texts.values()))
