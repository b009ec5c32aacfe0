"""Letters of a phrase that are no options: words, parts of terms, variables of formulas.

In: a phrase and the match of a letter in it. Out: whether it is the article `A` or the pronoun `I` of a sentence, or
belongs to a term (vitamin C, E. coli, T cells) or a formula (E = mc^2). Left out on purpose: option texts, which may hold
such letters; see `options.py`.
"""

from __future__ import annotations

import re

_VERBS = (
    "is|was|because|since|as|and|or|but|for|with|which|would|seems|seem|looks|must|should|has|have|had|"
    "due|given|based|by|not|nor|rather|over|instead|are|were|appears|matches|match|fits|fit|makes|"
    "describes|represents|wins|correctly|best|can|cannot|could|may|might|will|does|doesn't|isn't|wasn't|"
    "can't|won't|says|states|gives|shows|fails|contradicts|then|than|if|when|while|although|though|too|"
    "also|only|being|it|vs|versus|in|on|to|from|at"
)
VERBS = frozenset(_VERBS.split("|"))
"""Words after which a capital `A` is no article: "A is", "A because"."""

_NEXT_WORD = re.compile(r"\s+([A-Za-z']+)")
"""The word after a letter: ` cat`."""
_VERDICT = re.compile(r"\s+(?:correct|right|wrong|true|false|incorrect)\s*(?:[?.,;!]|\Z)")
"""A verdict after a letter, which is then an option: ` correct.`"""
_NAMED = re.compile(r"\b(?:option|choice|letter|answer)s?\s*[\"'(]*\Z", re.IGNORECASE)
"""A noun before a letter, which is then an option: `option (`."""
_TERM_BEFORE = re.compile(
    r"\b(?:vitamins?|hepatitis|influenza|types?|groups?|class|grade|plan|schedule|fig(?:ure)?\.?|appendix|section"
    r"|chapter|factor"
    r"|protein|antigen|immunoglobulin|alpha|beta|gamma|delta|sigma|theta|lambda|omega|phi|psi|rho|mu)[\s-]+\Z",
    re.IGNORECASE,
)
"""A word that makes the letter after it a term: `vitamin `."""
_TERM_AFTER = re.compile(
    r"[\s-]+(?:cells?|lymphocytes?|vitamins?|chromosomes?|rays?|major|minor|level|waves?|bosons?|virus)\b"
    r"|\.\s?(?:coli|elegans|aureus|pylori|cerevisiae|melanogaster|subtilis|pneumoniae|falciparum|sapiens|albicans"
    r"|tuberculosis"
    r"|pyogenes|difficile|botulinum|cholerae|gonorrhoeae|meningitidis|influenzae|thaliana|musculus|rerio|rex)\b"
)
"""A word that makes the letter before it a term: ` cells`."""
_FORMULA_BEFORE = re.compile(r"(?:(?<![=-])[<>|^]|(?<=\w)\s*[=*]|[<>=]=|(?<![A-Z])(?<![A-Z]\s)(?<![A-Z]\)\s)\+)\s*\Z")
"""A sign that makes the letter after it a variable: `x = `."""
_FORMULA_AFTER = re.compile(r"\s*(?:=(?![=>])|[<^|*≤≥≈≠±](?!\*)|\+\s*[\da-z]|>\s*[\da-z])|\s*->?\s*\d")
"""A sign that makes the letter before it a variable: ` = 2`."""


def is_word(phrase: str, match: re.Match[str]) -> bool:
    """Whether a bare letter is the article `A` or the pronoun `I` of a sentence."""
    bare = match["capital"] or match["small"]
    if bare is None or bare not in "AIa":
        return False
    if _VERDICT.match(phrase, match.end()):
        return False
    after = _NEXT_WORD.match(phrase, match.end())
    if _NAMED.search(phrase[max(0, match.start() - 12) : match.start()]) and bare != "a":
        return False
    if bare == "I":
        return after is not None or bool(
            re.search(r"\b(?!is\b|be\b|with\b|or\b|and\b|to\b)[a-z']+\s+\Z", phrase[: match.start()][-20:])
        )
    return after is not None and after[1].casefold() not in VERBS and not re.fullmatch("[A-Z]", after[1])


def is_term(phrase: str, match: re.Match[str]) -> bool:
    """Whether a bare letter is part of a term or a formula."""
    before = phrase[max(0, match.start() - 30) : match.start()]
    return bool(
        _TERM_BEFORE.search(before)
        or _FORMULA_BEFORE.search(before)
        or _TERM_AFTER.match(phrase, match.end())
        or _FORMULA_AFTER.match(phrase, match.end())
    )
