"""The order of an item's options, and where the right ones stand.

In: options by letter with the gold, or items. Out: the options in an order that a seed decides, letters given anew and the
gold mapped; counts of gold letters. Some data sets put the right option first (truthfulqa), which a model that favours a
letter turns into a score. Left out on purpose: when to shuffle; see the loader.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from string import ascii_uppercase

from collabsim.item import Item

FLAGGED_SHARE = 0.6
"""Share of items above which one gold letter makes a set suspicious."""

Gold = str | tuple[str, ...]


def shuffled(choices: Mapping[str, str], gold: Gold, seed: int) -> tuple[dict[str, str], Gold]:
    """The options in an order drawn with `seed`, relabelled A, B, ..., and the gold letter or letters that follow.

    Letters of several golds come in the new order. Derive `seed` from the item's content (`collabsim.seeds`), so that an
    item keeps its order wherever it is loaded. Options such as "none of the above", or that name other letters, keep
    their place, and the rest are shuffled among the others. Raises `ValueError` for a gold that is no option.
    """
    golds = (gold,) if isinstance(gold, str) else gold
    if missing := [letter for letter in golds if letter not in choices]:
        raise ValueError(
            f"expected golds among {', '.join(choices)}, got {', '.join(missing)}; give letters of options"
        )
    old = list(choices)
    if any(_names_letters(text, old) for text in choices.values()):
        order = old
    else:
        free = [letter for letter in old if not _holds_place(choices[letter])]
        drawn = iter(random.Random(seed).sample(free, len(free)))
        order = [letter if _holds_place(choices[letter]) else next(drawn) for letter in old]
    new = dict(zip(ascii_uppercase, (choices[letter] for letter in order), strict=False))
    mapped = sorted(ascii_uppercase[order.index(letter)] for letter in golds)
    return new, mapped[0] if isinstance(gold, str) else tuple(mapped)


def _holds_place(text: str) -> bool:
    """Whether an option speaks of those before it, such as "all of the above"."""
    words = text.casefold()
    return "the above" in words or words.strip(" .") in ("both", "neither", "all of these", "none of these")


def _names_letters(text: str, letters: Iterable[str]) -> bool:
    """Whether an option is about other options by letter ("both A and B"), so that no letter may move."""
    words = text.replace(",", " ").replace("(", " ").replace(")", " ").strip(" .").split()
    joined = {
        "and",
        "or",
        "nor",
        "&",
        "both",
        "neither",
        "only",
        "either",
        "all",
        "of",
        "are",
        "correct",
        "true",
        "options",
    }
    named = [word for word in words if word in set(letters)]
    return len(named) > 1 and all(word in named or word.casefold() in joined for word in words)


@dataclass(frozen=True, slots=True)
class GoldHistogram:
    """How often each letter is right."""

    counts: Mapping[str, int]
    """By letter, alphabetical; an item with several golds counts for each."""
    items: int
    """Items with options."""

    @property
    def majority(self) -> str | None:
        """The most frequent letter, the first of equals; None without items."""
        return max(self.counts, key=lambda letter: self.counts[letter], default=None)

    @property
    def share(self) -> float:
        """Share of items that always answering the majority letter gets right."""
        return self.counts[self.majority] / self.items if self.majority else 0.0

    @property
    def flagged(self) -> bool:
        """Whether the majority letter is right in more than 60% of the items."""
        return self.share > FLAGGED_SHARE


def gold_histogram(items: Iterable[Item]) -> GoldHistogram:
    """Counts of gold letters over the items of `items` that have options."""
    counts: Counter[str] = Counter()
    number = 0
    for item in items:
        if item.view.choices:
            number += 1
            counts.update([item.gold] if isinstance(item.gold, str) else item.gold)
    return GoldHistogram(dict(sorted(counts.items())), number)
