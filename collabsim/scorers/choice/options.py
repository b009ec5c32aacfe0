"""The options of an item, and every place where a phrase names one of them.

In: the options' letters and texts; a phrase in plain form (`option_text.plain_text`). Out: mentions in order: letters that
stand alone, option texts, numbers equal to an option. A letter must be no word (`A` cat, `I` think), no part of a term
(vitamin C, E. coli) and no part of a formula, unless that is an option's own text. Left out on purpose: whether a mention
is meant or rejected; see `polarity.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from collabsim.scorers.choice.option_text import option_key, option_pattern, option_words
from collabsim.scorers.choice.stray_letters import VERBS, is_term, is_word
from collabsim.scorers.reading.declarations import last_matches
from collabsim.scorers.reading.numbers import Number, whole_number

MOST_LETTERS = 300
"""Mentions of one form that are read in a text, from its end."""

State = Literal["named", "rejected", "affirmed", "asked", "torn"]


@dataclass(frozen=True, slots=True)
class Mention:
    """A place that names an option."""

    letter: str
    start: int
    end: int
    state: State = "named"
    """`torn`: a letter with the text of another option."""


@dataclass(frozen=True)
class Options:
    """The options of one item, ready for reading."""

    texts: Mapping[str, str]
    """Letter to words in plain form."""
    keys: Mapping[str, str]
    """What two spellings of one option share, to its first letter."""
    numbers: Mapping[str, tuple[Number, str]]
    """Letter to value and unit, of options that are numbers."""
    joint: Mapping[frozenset[str], str]
    """Letters that an option's text joins ("both A and B") to that option."""
    letters: re.Pattern[str]
    running: re.Pattern[str]
    """Texts that are told from the words of a sentence around them."""
    starting: re.Pattern[str]
    """All texts, for where a phrase begins."""
    numeric: bool
    """True when some option is a plain number, so that a digit names an option's text and not its place."""

    def first_equal(self, letter: str) -> str:
        """The first letter whose option has the text of `letter`'s."""
        return self.keys.get(self.texts[letter].replace(" ", ""), letter)

    def equal(self, text: str) -> str | None:
        """The option whose text, or whose value as a number, `text` is."""
        return self.keys.get(option_key(text)) or self._by_value(text.strip(" \t\n\"'()[]{}*.,;:!"))

    def at(self, phrase: str, start: int) -> Mention | None:
        """The option whose text stands at `start`: the longest one, else a number equal to one."""
        if match := self.starting.match(phrase, start):
            return Mention(str(match.lastgroup), start, match.end())
        if self.numbers and (number := _NUMBER.match(phrase, start)):
            if letter := self._by_value(phrase[start : number.end()].rstrip(".,")):
                return Mention(letter, start, number.end())
            letter = self._by_value(number[1].rstrip(".,"))
            if letter and (not self.numbers[letter][1] or number[2] is None or number[2].casefold() in VERBS):
                return Mention(letter, start, number.end(1))
        return None

    def _by_value(self, text: str) -> str | None:
        """The only option that equals `text` as a number; units must agree where both are given."""
        if not self.numbers or not text:
            return None
        split = _QUANTITY.fullmatch(text)
        value = whole_number(split[1], units=False) if split else None
        if split is None or value is None:
            return None
        unit = option_words(split[2]) if split[2] else ""
        letters = [letter for letter, (known, own) in self.numbers.items() if known == value and _one_unit(unit, own)]
        return letters[0] if len({self.first_equal(letter) for letter in letters}) == 1 else None

    def mentions(self, phrase: str) -> list[Mention]:
        """Every mention of an option in `phrase`, by position; those of numbers only in short phrases."""
        mentions = [
            Mention(str(match.lastgroup), match.start(), match.end())
            for match in last_matches(self.running, phrase, MOST_LETTERS)
        ]
        if self.numbers and len(phrase) <= SHORT:
            mentions += self._numbers(phrase)
        spans = [(mention.start, mention.end) for mention in mentions]
        for match in last_matches(self.letters, phrase, MOST_LETTERS):
            if any(start <= match.start() and match.end() <= end for start, end in spans):
                continue
            if letter := self._letter(phrase, match):
                mentions.append(self._with_text(phrase, Mention(letter, match.start(), match.end())))
        return _outermost(mentions + self._places(phrase))

    def _places(self, phrase: str) -> list[Mention]:
        """Options named by number (`option 3`), where no option's text is one."""
        letters = [] if self.numeric else list(self.texts)
        matches = [match for match in last_matches(_NAMED_PLACE, phrase, MOST_LETTERS) if int(match[1]) <= len(letters)]
        return [Mention(letters[int(match[1]) - 1], match.start(1), match.end(1)) for match in matches]

    def _numbers(self, phrase: str) -> list[Mention]:
        matches = [match for match in _NUMBER.finditer(phrase) if not _in_formula(phrase, match)]
        return [mention for match in matches if (mention := self.at(phrase, match.start()))]

    def _letter(self, phrase: str, match: re.Match[str]) -> str | None:
        letter = next(group for group in match.groups() if group).upper()
        own = self.at(phrase, _after_label(phrase, match.end()))
        sure = match["open"] is not None or (own is not None and own.letter == letter)
        return letter if sure or not (is_word(phrase, match) or is_term(phrase, match)) else None

    def _with_text(self, phrase: str, mention: Mention) -> Mention:
        """The mention together with the option text that it labels ("C. green", "green (C)"); torn by another's."""
        own = self.at(phrase, _after_label(phrase, mention.end))
        if own and ENDS.match(phrase, own.end):
            same = self.first_equal(own.letter) == self.first_equal(mention.letter)
            if same:
                return replace(mention, end=own.end)
            return replace(mention, end=own.end, state="torn") if own.end - own.start > 1 else mention
        before = self.running.search(phrase, max(0, mention.start - LONGEST_LABEL), mention.start)
        if before and phrase[mention.start] in "([" and not phrase[before.end() : mention.start].strip():
            same = self.first_equal(str(before.lastgroup)) == self.first_equal(mention.letter)
            return replace(mention, start=before.start(), state="named" if same else "torn")
        return mention


SHORT = 200
"""Characters up to which a phrase's numbers may name options."""

LONGEST_LABEL = 80
"""Characters before a bracketed letter in which its option's text is looked for."""

_NUMBER = re.compile(
    r"(?<![\w.,])([-+]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:\s*/\s*\d+)?)(?:\s?(%|[A-Za-z]+(?:/[A-Za-z]+)?\b))?"
)
"""A number with its unit, which may equal an option: `12 cm`."""
_NAMED_PLACE = re.compile(r"\b(?:option|choice)\s+\(?([1-9][0-9]?)(?![\w%/^]|[.,][0-9])", re.IGNORECASE)
"""An option by its place: `option 2`."""
_QUANTITY = re.compile(r"([-+]?\s?[\d.,/ ]*\d[\d,./]*)\s*([%A-Za-z][\w/^*% ]{0,30})?")
"""An option that is a number: `1,200 km`."""
ENDS = re.compile(r"[)\]}\"'*]{0,8}\s*(?:[.,;:!)\]}\n]|\Z)")
"""What ends a mention of an option: `),`."""
_LABEL = re.compile(r"[)\]}>\"'*]{0,8}[.:,]?[)\]}\"'*]{0,8}\s*(?:[-–—=/(:\[\"']+\s*)?")
"""What stands between a letter and its option's text: `) `."""


def _after_label(phrase: str, end: int) -> int:
    """Where the text begins that a letter ending at `end` labels: `C. green`, `C) green`, `C (green)`."""
    label = _LABEL.match(phrase, end)
    return label.end() if label else end


def _in_formula(phrase: str, match: re.Match[str]) -> bool:
    return bool(re.search(r"[+*/^-]\s*\Z", phrase[: match.start()]) or re.match(r"\s*[+*/^=]", phrase[match.end(1) :]))


def _outermost(mentions: list[Mention]) -> list[Mention]:
    """Mentions by position without those that lie in others."""
    kept: list[Mention] = []
    for mention in sorted(mentions, key=lambda mention: (mention.start, -mention.end)):
        if not kept or mention.start >= kept[-1].end:
            kept.append(mention)
    return kept


def _one_unit(a: str, b: str) -> bool:
    """Whether two units can be one: equal, one left out, or one the abbreviation of the other (`m`, `metres`)."""
    short, long = sorted((a, b), key=len)
    return not short or short == long or (len(short) <= 2 and len(long) > 3 and short[0] == long[0])


_COMMON = frozenset({"the", "and", "not", "all", "one", "two", "its", "for", "are", "was", "has", "both"})


@lru_cache(maxsize=4096)
def read_options(choices: tuple[tuple[str, str], ...]) -> Options:
    """The options of an item, given as (letter, text) pairs."""
    texts = {letter: option_words(text) for letter, text in choices}
    keys: dict[str, str] = {}
    for letter, words in texts.items():
        keys.setdefault(words.replace(" ", ""), letter)
    keys.pop("", None)
    first = {letter: words for letter, words in texts.items() if keys.get(words.replace(" ", "")) == letter}
    telling = {k: words for k, words in first.items() if _tells(words)}
    lone = {k: words for k, words in first.items() if not (len(words) == 1 and words.upper() in texts)}
    numbers = {letter: number for letter, words in texts.items() if (number := _quantity(words))}
    plain = any(whole_number(words, units=False) is not None for words in texts.values())
    return Options(texts, keys, numbers, _joined(texts), _letters(texts), _any_of(telling), _any_of(lone), plain)


def _tells(words: str) -> bool:
    return (len(words) > 2 or not words.isascii()) and words not in _COMMON and _quantity(words, unit=False) is None


def _quantity(words: str, *, unit: bool = True) -> tuple[Number, str] | None:
    split = _QUANTITY.fullmatch(words)
    if split and split[2] and not unit:
        return None
    value = whole_number(split[1], units=False) if split else None
    return None if split is None or value is None else (value, option_words(split[2]) if split[2] else "")


def _any_of(texts: Mapping[str, str]) -> re.Pattern[str]:
    longest = sorted(texts.items(), key=lambda option: -len(option[1]))
    named = [f"(?P<{letter}>(?:(?:the|an?)\\s+)?{option_pattern(words)})" for letter, words in longest]
    # The options' own texts, the longest first: `the red fox`.
    return re.compile("|".join(named) or r"(?!)", re.IGNORECASE)


def _letters(texts: Mapping[str, str]) -> re.Pattern[str]:
    big = "".join(texts) or "A"
    word = "0-9A-Za-z_À-ɏ"
    # A letter in brackets, alone, before a bracket, or small after a noun: `(c)`, `C`, `c)`, `option c`.
    return re.compile(
        rf"(?<![{word}\\-])(?<![A-Za-z]['’])(?<![^.\s]\.)(?<!\b[A-Za-z]\()(?:[(\[{{<]\s?(?P<open>[{big}{big.lower()}])\s?[)\]}}>](?![{word}])"
        rf"|(?P<capital>[{big}])(?![{word}#]|\+(?!\s*\(?[{big}]\b)|['’]\w|-\w|\.[{word}])"
        rf"|(?P<half>[{big.lower()}])(?=\))"
        rf"|(?<=(?i:option|choice|answer|letter)\s)(?P<small>[{big.lower()}])(?![{word}'’]))"
    )


_JOINED = re.compile(
    r"(?:both\s+)?(?:options?\s+|choices?\s+|statements?\s+)?\(?[a-z]\)?(?:\s*(?:,\s*and|,|and|&|\+)\s*\(?[a-z]\)?)+"
    r"(?:\s+only|\s+(?:are\s+)?(?:both\s+|all\s+)?(?:correct|true|right))?"
)
"""An option that stands for others: `both a and c`."""
_ALL = re.compile(
    r"(?P<both>both|both of (?:the above|these|them)|both (?:are )?(?:correct|true))|all of (?:the above|these|them)|all"
)
"""An option that stands for all before it: `all of the above`."""


def _joined(texts: Mapping[str, str]) -> dict[frozenset[str], str]:
    """Sets of letters that an option's text stands for."""
    sets: dict[frozenset[str], str] = {}
    for place, (letter, words) in enumerate(texts.items()):
        if _JOINED.fullmatch(words):
            named = frozenset(match.upper() for match in re.findall(r"\b[a-z]\b", words))
        elif every := _ALL.fullmatch(words):
            named = frozenset(list(texts)[:place]) if not every["both"] or place == 2 else frozenset()
        else:
            continue
        if len(named) > 1 and named <= set(texts) - {letter}:
            sets.setdefault(named, letter)
    return sets
