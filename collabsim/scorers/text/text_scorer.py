"""Open questions: short texts with aliases, compared as normalised words, and by token F1 where they differ.

In: a reply, and golds that are texts (any of them is right). Out: right when the answer and a gold are equal after
normalisation (case, accents, articles, punctuation, spacing; numbers by value); else the best token F1 over the golds as
partial credit, the usual metric of these data sets (popqa, SQuAD), or nothing with `credit="exact"`. What is read: the last
declaration ("Answer: ..."), else all of a short reply, else the last sentence. Digits are never equal to number words,
dates are text. Left out on purpose: looking for a gold inside a longer reply, which rewards listing guesses.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from collabsim.item import Answer, Item, ItemView, Score
from collabsim.scorers.reading.declarations import Declaration, declarations, first_sentence
from collabsim.scorers.reading.numbers import whole_number
from collabsim.scorers.reading.scoring import (
    NO_ANSWER,
    AnswerScorer,
    Extraction,
    accepted_golds,
    declared_by,
    why_unparsed,
)
from collabsim.scorers.reading.text import plain_characters, readable, squeezed, without_latex_text, without_markup
from collabsim.scorers.text.exact_scorer import PLACEHOLDERS, canonical_text

LONGEST_REPLY = 200
"""Characters up to which a reply of one line is its own answer."""

LABELS = frozenset({"yes", "no", "true", "false"})
"""Golds that are right or wrong as a whole: they get no partial credit."""

ARTICLES = frozenset({"a", "an", "the"})

_OPPOSITE = {"yes": "no", "no": "yes", "true": "false", "false": "true"}
_LABEL = re.compile(
    r"(yes|no|true|false)\b(?:\W*\Z|\s*[,.;:!–—-]\s*"
    r"(?-i:(?=[a-z]|(?:It|He|She|They|The|This|That|There|I|We|You|Because|Since|As|In|On|At)\b)))",
    re.IGNORECASE,
)
"""Yes or no, and an explanation: `Yes, he was`."""
_REASON = re.compile(
    r",?\s+(?:because|since|which\s+(?:is|was))\s|\s+[–—-]+\s+(?=(?:it|he|she|they|the|this|that|a|an)\s)"
)
"""Where a reason begins: `Paris, which is in France`."""
_EXPLAINS = re.compile(
    r"(?<=[.!;])\s+(?=(?:It|This|That|He|She|They|The|These|Those|Because|Since|As|In|I|We|His|Her|There"
    r"|Explanation|Note|Reason"
    r"(?:ing)?|Wait|Actually|So)\b)"
)
"""Where a sentence about the answer begins: `Paris. It is`."""
_TITLES = (
    "Mr",
    "Mrs",
    "Ms",
    "Dr",
    "St",
    "Mt",
    "Ft",
    "Jr",
    "Sr",
    "Prof",
    "Gen",
    "Col",
    "Lt",
    "Capt",
    "Rev",
    "Sen",
    "Gov",
    "vs",
    "No",
)
_SENTENCE = re.compile("".join(rf"(?<!\b{title}\.)" for title in _TITLES) + r"(?<!\b[A-Z]\.)(?<=[.!;])\s+(?=[A-Z\"'(])")
"""The end of a sentence: `Paris. France`. Not the point of a title: `St. Mark`."""
_JSON = re.compile(r"[\"'](?:final_?\s?)?answer[\"']\s*:\s*\"((?:[^\"\\\n]|\\.)*)\"", re.IGNORECASE)
"""An answer as JSON: `"answer": "Paris"`."""
_LEAD = re.compile(
    r"(?:(?:[Ss]o|[Tt]hus|[Tt]herefore|[Hh]ence),?\s+)?(?:I\s+(?:think|believe|guess|would\s+say|am\s+sure)\s+(?:that\s+)?)?"
    r"(?:(?:[Ii]t|[Tt]hat|[Tt]his|[Hh]e|[Ss]he|[Tt]hey)(?:'s|\s+(?:is|was|are|were|must\s+be|would\s+be))\s+|\s*:\s*)(?=\S)"
)
"""Words before an answer without a declaration: `I think it is Paris`."""
_KNOWS_NOT = re.compile(
    r"\W*(?:sorry,?\s+)?(?:i\s+(?:really\s+)?(?:do\s?n[o']t|don't)\s+know|i(?:'m|\s+am)\s+(?:not\s+sure|unsure"
    r"|unable)|no\s+idea"
    r"|i\s+(?:cannot|can't|can\s+not)\s+(?:answer|say|tell|determine|help))\b",
    re.IGNORECASE,
)
"""A reply that gives up: `I don't know`."""
_ASIDE = re.compile(r"(?<=\S)\s*(?:\([^()]*\)|\[[^\[\]]*\])\s*\.?\Z")
"""A last remark in brackets: `Bach (composer)`."""
_GROUPED = re.compile(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))")
"""A comma between digit triples: `1,200`."""
_PUNCTUATION = re.compile(r"(?<=[0-9])[.:/-](?=[0-9])|(?<![\w.])[-.](?=\.?[0-9])|[\w+#%\s]+|(?P<drop>.)", re.DOTALL)
"""What is kept (words, signs and points of numbers), or dropped: `3.5`, `!`."""
_ARTICLE = re.compile(r"\b(?:a|an|the)\b(?=\s+\S)")
"""An article before a word: `the beatles`. Not the last letter of `vitamin a`."""
_NUMBER = re.compile(r"(?![-+]?0[0-9])[-+]?[0-9.][0-9.,/ ]*%?")
"""All that a plain number may consist of: `1,200.5`."""
_GAP = re.compile(r"(?<![0-9])\s|\s(?![0-9])")
"""A blank that is not between two digits: `new york`."""


class TextScorer(AnswerScorer):
    """Scores short texts against aliases; the canonical value is the normalised text without its blanks.

    `credit`: what a differing answer is worth, token F1 (Rajpurkar et al. 2016, the best over the aliases) or nothing. For
    outcomes that must be accuracies, `credit="exact"`.
    """

    kind = "text"

    def __init__(self, credit: Literal["f1", "exact"] = "f1") -> None:
        self.credit = credit

    def extract(self, text: str, view: ItemView, finish: str = "stop") -> Answer | None:  # noqa: ARG002
        """The text that `text` commits to, or None. A cut text counts only what it declared."""
        return _extraction(text, finish).answer

    def extraction(self, text: str, view: ItemView, finish: str = "stop") -> Extraction:  # noqa: ARG002
        """`extract` with its reason."""
        return _extraction(text, finish)

    def same(self, a: Answer, b: Answer, view: ItemView) -> bool:  # noqa: ARG002
        """Whether two answers are equal when normalised, one of them perhaps without its remark in brackets."""
        return bool(a.value == b.value or a.value == _without_aside(b.text) or b.value == _without_aside(a.text))

    def gold(self, text: str, view: ItemView) -> Answer | None:  # noqa: ARG002
        """An accepted text as an answer; None when it is blank."""
        value = text_key(text)
        return Answer(squeezed(text), value) if value else None

    def judge(self, text: str, item: Item, finish: str) -> Score:
        """`score` without memory: right, partial (the best token F1 over the golds), wrong or unparsed."""
        score = super().judge(text, item, finish)
        if score.verdict != "wrong" or self.credit == "exact":
            return score
        shared = [(token_f1(str(score.extracted), gold), gold) for gold in accepted_golds(item)]
        best, gold = max(shared, key=lambda pair: pair[0], default=(0.0, ""))
        if best == 0.0:
            return score
        return Score(best, "right" if best == 1.0 else "partial", score.extracted, f"token F1 {best:.3f} with {gold!r}")


@lru_cache(maxsize=1 << 14)
def _extraction(text: str, finish: str) -> Extraction:
    part = None if finish in NO_ANSWER else readable(text)
    if part is None:
        return Extraction(None, why_unparsed(text, finish))
    declared_at = [*declarations(part), *(Declaration("tag", at.start(), at[1]) for at in _JSON.finditer(part))]
    declared_at.sort(key=lambda declaration: declaration.start)
    for place in range(len(declared_at) - 1, -1, -1):
        declaration = declared_at[place]
        reason = declared_by(part, declaration.start)
        if declaration.form == "open box":
            return Extraction(None, f"box never closed: {reason}")
        declared = _declared(declaration, corrects=place > 0)
        if declared or declaration.form in ("box", "tag"):
            answer = _as_answer(declared or "")
            return Extraction(answer, reason if answer else f"says nothing definite: {reason}")
    answer = _as_answer(_undeclared(part.strip())) if finish == "stop" and not declared_at else None
    return Extraction(answer, "no declaration: the reply's last words" if answer else why_unparsed(text, finish))


def _declared(declaration: Declaration, *, corrects: bool) -> str | None:
    """The declared text without its reasons; None for what is negated, asked, a placeholder, or corrects nothing."""
    text = declaration.text
    if declaration.form == "correction":
        text = first_sentence(text, initials=True)[0]
        return None if not corrects or re.match(r"(?:not|n't)\b", text) else text
    if declaration.negated or text in PLACEHOLDERS:
        return None
    if declaration.form == "sentence":
        asked = "?" in first_sentence(text, initials=True)[1]
        return None if asked else _REASON.split(_SENTENCE.split(text)[0])[0].lstrip(": ")
    if declaration.form == "label":
        return _REASON.split(_EXPLAINS.split(text)[0])[0]
    return text


def _undeclared(reply: str) -> str:
    """What a reply without a declaration answers: all of it when it is short, else its last sentence."""
    if "\n" not in reply and len(reply) <= LONGEST_REPLY:
        first = _EXPLAINS.split(reply)[0]
    else:
        lines = [line.strip(" \t>#*-") for line in reply.splitlines()]
        first = re.split(r"(?<=[.!?])\s+(?=[A-Z\"'])", next((line for line in reversed(lines) if line), ""))[-1]
    return _REASON.split(_LEAD.sub("", first, count=1))[0]


def _as_answer(text: str) -> Answer | None:
    value = "" if _KNOWS_NOT.match(text) else text_key(text)
    return Answer(squeezed(text), value) if value else None


@lru_cache(maxsize=1 << 14)
def text_key(text: str) -> str:
    """What two spellings of one answer share; empty only for a blank text.

    Normalised words without blanks; a plain number is its value, "Yes, it is" is "yes". Articles alone stay; any other
    text that normalises to nothing ("?") is itself, marked by a leading `=`, so that it equals nothing but itself.
    """
    plain = _plain(text)
    if not plain:
        return ""
    if label := _label(plain):
        return label
    words = normalised(text)
    for form in (plain, words):
        number = whole_number(form, units=False) if _NUMBER.fullmatch(form) else None
        if isinstance(number, Fraction | int):
            return str(Fraction(number))
    return _GAP.sub("", words) if words else f"={canonical_text(text)}"


def _label(plain: str) -> str | None:
    match = _LABEL.match(plain)
    label = match[1].casefold() if match else ""
    return label if label and not re.search(rf"\b{_OPPOSITE[label]}\b", plain, re.IGNORECASE) else None


@lru_cache(maxsize=1 << 14)
def normalised(text: str) -> str:
    """`text` as words: lower case, no accents, articles or punctuation, single blanks (as SQuAD's evaluation does).

    Kept because they tell answers apart: signs, points, slashes and colons inside numbers, `+`, `#`, `%`, and an article
    that ends the text ("Vitamin A"). Grouping commas go, `&` is "and", hyphens between words are blanks.
    """
    text = _plain(text).casefold()
    if not text.isascii():
        decomposed = unicodedata.normalize("NFD", text)
        text = unicodedata.normalize(
            "NFC", "".join(c for c in decomposed if unicodedata.category(c) != "Mn" or c > "\u036f")
        )
    text = _GROUPED.sub("", text).replace("&", " and ").replace("_", " ")
    text = re.sub(r"(?<=[^\W\d])[-/–—](?=\w)", " ", text)
    words = squeezed(text)
    while (fewer := _unmarked(words)) != words:  # a mark that goes may change what a point beside it means
        words = fewer
    rest = squeezed(_ARTICLE.sub(" ", words))
    return words if rest in ARTICLES else rest


def _unmarked(text: str) -> str:
    return squeezed(_PUNCTUATION.sub(lambda match: "" if match["drop"] else match[0], text))


def token_f1(answer: str, gold: str) -> float:
    """Token F1 in [0, 1] of two texts: 2PR / (P + R) over their normalised words as multisets (Rajpurkar et al. 2016).

    0 for yes/no golds and golds without words ("A", "?"), which are right or wrong as a whole.
    """
    if text_key(gold) in LABELS | ARTICLES or text_key(gold).startswith("="):
        return 0.0
    given, expected = normalised(answer).split(), normalised(gold).split()
    shared = sum((Counter(given) & Counter(expected)).values())
    return 2 * shared / (len(given) + len(expected)) if shared else 0.0


def _plain(text: str) -> str:
    return squeezed(without_latex_text(plain_characters(without_markup(text))).replace("$", " "))


@lru_cache(maxsize=1 << 14)
def _without_aside(text: str) -> str | None:
    """The key of `text` without a last remark in brackets; None when it has none."""
    shorter = _ASIDE.sub("", text)
    return text_key(shorter) if shorter != text else None
