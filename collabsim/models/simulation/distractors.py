"""What a simulated world adds to an item: how hard it is, and which wrong answers people give.

In: an item. Out: its difficulty on the logit scale, its right answer in the form the task asks for, and an ordered
list of distinct wrong answers. All of it comes from the item's content, so that every simulated model, in every
process, errs towards the same answers and wrong votes can coincide. Left out on purpose: plausibility.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

from collabsim.errors import PrerequisiteError
from collabsim.item import Item
from collabsim.seeds import SEED_BITS, derive_seed

MOST_DISTRACTORS = 16

_LAST_DIGITS = re.compile(r"\d{1,9}(?=\D*\Z)")
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:/\d+)?")
_OPPOSITES = {"yes": "no", "no": "yes", "true": "false", "false": "true"}
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]


def difficulty_of(item: Item) -> float:
    """The item's difficulty in logits: its own, or a standard normal draw from its content."""
    if item.difficulty is not None:
        return item.difficulty
    uniform = (derive_seed("difficulty", item.id) + 0.5) / 2**SEED_BITS
    return NormalDist().inv_cdf(uniform)


def canonical_answer(text: str) -> str | Fraction:
    """A key under which equal answers are equal: numbers by value, everything else without case and outer blanks."""
    text = text.strip().casefold().replace("−", "-")
    if _NUMBER.fullmatch(text):
        number, _, denominator = text.replace(",", "").partition("/")
        if not denominator or int(denominator):
            return Fraction(number) / int(denominator or 1)
    return text


def right_answer(item: Item) -> str:
    """The gold in the form that tasks ask for: the letter of a choice, else the gold's text."""
    gold = item.gold_text.strip()
    judged_by: Sequence[str] = getattr(item.scorer, "judged_by", ())  # items for simulated models alone have no scorer
    if not gold and judged_by:
        raise PrerequisiteError(
            f"item {item.id} has tests but no reference solution, so a simulated model cannot answer it; use real models, "
            "or a source with solutions (options: {road: hub})"
        )
    choices = item.view.choices
    if not choices or gold in choices:
        return gold
    letters = [letter for letter, option in choices.items() if canonical_answer(option) == canonical_answer(gold)]
    return letters[0] if letters else gold


@lru_cache(maxsize=4096)
def wrong_answers(item: Item, count: int) -> tuple[str, ...]:
    """Distinct wrong answers of an item, most `count` of them; every other letter of a choice item, whatever `count`.

    The list of a smaller count is a prefix of that of a larger one, so models with different counts err alike.
    Numbers (and texts with digits) get their last digits raised, other texts are replaced by invented words.
    """
    gold = right_answer(item)
    if item.view.choices:
        return tuple(letter for letter in item.view.choices if letter != gold)
    taken: dict[str | Fraction, str] = {canonical_answer(gold): gold}
    for text in _candidates(gold, item.id):
        if len(taken) > count:
            break
        taken.setdefault(canonical_answer(text), text)
    return tuple(taken.values())[1:]


def _candidates(gold: str, item_id: str) -> Iterator[str]:
    if digits := _LAST_DIGITS.search(gold):
        offsets = sorted(range(1, 2 * MOST_DISTRACTORS + 1), key=lambda k: derive_seed("offset", item_id, k))
        for offset in offsets:
            raised = str(int(digits[0]) + offset).zfill(len(digits[0]))
            yield gold[: digits.start()] + raised + gold[digits.end() :]
        return
    if opposite := _OPPOSITES.get(gold.casefold()):
        yield opposite.capitalize() if gold[:1].isupper() else opposite
    for k in range(2 * MOST_DISTRACTORS):
        yield "".join(
            _SYLLABLES[derive_seed("syllable", item_id, k, place) % len(_SYLLABLES)] for place in range(3)
        ).capitalize()
