"""Tells the options that a phrase means from those that it rejects, asks about or supposes.

In: a phrase and its mentions. Out: the mentions with their states: named, rejected ("not B", "B is wrong", "A, B and D are
out"), affirmed ("C is correct", "all but C"), asked ("is it B?", "if B were true"). Left out on purpose: which mention wins;
see `phrases.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from collabsim.scorers.choice.options import Mention, State

REACH = 70
"""Characters before a mention that may decide what is meant."""

_NAMES = r"(?:options?|choices?|answers?|letters?|statements?|alternatives?|number)"
_BETWEEN = (
    rf"(?:(?:{_NAMES}|be|being|the|either|both|it|it's|is|are|that|this|correct|right|think|thinks|believe|say|agree|select"
    r"|choose|pick|go|with|going|to|for|necessarily|really|quite|actually|of|likely|as|on|out|any|:)\s+)*[(\[\"']{0,8}\Z"
)
_REJECTS_NEXT = re.compile(
    r"(?:\bnot:?|\bcannot|n't|\bneither|\bnor|\brather than|\binstead of|\bexcept(?:\s+for)?|\bunlike|\bthan|\bover"
    r"|\bagainst|\bdoubt"
    r"|\bunlikely|(?<!by )\beliminat(?:e|es|ed|ing)\b:?|\banything\s+but|\bnone\s+of|\bexclud\w+:?|\brul(?:e|es|ed"
    r"|ing)(?:\s+out)?:?|\bdiscard\w*:?|\breject\w*:?|\bdismiss\w*:?|\bnever"
    r"|\b(?:wrong|incorrect|false)(?:\s+(?:options?|answers?|choices?))?:|\bcross(?:ed|ing)?\s+out|\bother than"
    r"|\bversus|\bvs\.?"
    rf"|\bthought|\bconsidered)\s+{_BETWEEN}|(?:\A|\n)[^\w\n✓]*✗[^\w\n✓]*(?:{_NAMES}\s+)?[(\[\"']{{0,8}}\Z",
    re.IGNORECASE,
)
"""Words that reject the option after them: `rather than `."""
_AFFIRMS_NEXT = re.compile(
    r"\b(?:all|every\w*|none|nothing|no (?:option|choice|other|answer)s?|any (?:option|choice|answer))\b[^.;!?\n]{0,40}?"
    rf"\b(?:except(?:\s+for)?|but|other than|besides|apart from)\s+(?:(?:for|{_NAMES}|the)\s+)*[(\[\"']{{0,8}}\Z"
    rf"|(?:\A|\n)[^\w\n✗]*✓[^\w\n✗]*(?:{_NAMES}\s+)?[(\[\"']{{0,8}}\Z",
    re.IGNORECASE,
)
"""Words that reject all options but the one after them: `all options except `."""
_SUPPOSES_NEXT = re.compile(
    rf"\b(?:if|whether|unless|suppose|supposing|assume|assuming|were|consider|considering)\s+(?:(?:that|it|{_NAMES}"
    rf"|the|is|was|were|correct)\s+)*"
    r"[(\[\"']{0,8}\Z",
    re.IGNORECASE,
)
"""Words that only suppose the option after them: `if it were `."""
_WRONG = (
    r"(?:wrong|false|incorrect|impossible|out\b|eliminated|excluded|ruled\s+out|discarded|rejected|unlikely"
    r"|irrelevant|invalid"
    r"|implausible|untrue|less\s+\w+|too\s+\w+|unrelated|absurd|no\s+good)"
)
_REJECTED = re.compile(
    rf"[)\]}}>\"'*]{{0,8}}\s*(?:\(?(?:is|are|was|were|seems?|looks?|can|ca|must|wo|would|could|should|does|do|did|has|have)"
    rf"(?:(?:n't|\s?not)\b(?!\s+(?:only|{_WRONG}))|\s+(?:\w+\s+)?{_WRONG}|\s+no\b)"
    rf"|[\s:;–—,.(-]{{0,8}}(?:which\s+(?:is|are)\s+)?(?:wrong|incorrect|false|eliminated|impossible|ruled\s+out"
    rf"|not\s+correct|(?<=[:–—-]\s)no|(?<=[:–—-])no)\b(?![-\s]+\w)"
    r"|[ \t:;.)(-]{0,8}✗|\s+(?:looks?|seems?|appears?|might\s+be|may\s+be)\b[^.!?\n]{0,40}\bbut\b[^.!?\n]{0,12}(?:n't|not)\b"
    r"|\s*(?:fails?|contradicts?|cannot|makes\s+no\s+sense|goes\s+against)\b)",
    re.IGNORECASE,
)
"""Words that reject the option before them: `B is wrong`."""
_ADVERBS = (
    r"(?:(?:to be|clearly|definitely|indeed|most likely|probably|obviously|certainly|thus|therefore|also|both|all|then"
    r"|likely)\s+)*"
)
IS_RIGHT = re.compile(
    rf"[)\]}}>\"'*]{{0,8}}\s*(?:(?:is|are|seems|must be|has to be|would be(?![^.!\n?]*\bif\b)|should be|looks"
    rf"|appears|remains)\s+{_ADVERBS}"
    r"(?:(?:the|a|my)\s+)?(?:final\s+)?(?:(?:only|single|most|more|one)\s+)?"
    r"(?:correct|right|best|better|answer|choice|pick|likely|plausible|accurate|appropriate|suitable|closer|closest"
    r"|strongest|left|one|remaining)\b"
    r"(?!\s*\?)[^.!;,\n?]*(?P<question>\?)?"
    r"|\s+(?:fits?|match(?:es)?|works?|answers?|describes?|explains?)\b[^.!;,\n?]{0,60}\b(?:best|better|most"
    r"|perfectly|exactly)\b"
    r"|\s+(?:wins|it is)\b"
    r"|[ \t:–—.)(-]{0,8}(?:✓|(?:correct|right|yes)\b(?=\s*(?:[.!,;)\n]|\Z))))",
    re.IGNORECASE,
)
"""Words that affirm the option before them: `C is correct`."""
JOINT = re.compile(
    rf"[)\]}}>\"'.*]{{0,8}}\s*(?:[,;]\s*(?:and|or|&)?|[/+]|&|\band/or\b|\band\b|\bor\b|\bnor\b|\bas well as\b"
    rf"|\(\s*or\b|\bversus\b|\bvs\.?)\s*"
    rf"(?:(?:also|possibly|maybe|perhaps|even|else|either|neither|not|both|{_NAMES})\s+)*[(\[\"'*]{{0,8}}",
    re.IGNORECASE,
)
"""What joins two options into one phrase: `A and B`."""
_LISTED = re.compile(r":\s*[(\[]?\Z")
"""The beginning of a list of options: `wrong: (`."""
_ASKED = re.compile(
    r"[)\]\"'*]{0,8}(?:\s+(?:correct|right|true|it|(?:the\s+)?(?:right\s+|correct\s+)?(?:answer|one|option)))?\s*\?(?:\s*(?P<yes>yes|correct|right|indeed)\b|\s*(?P<no>no|wrong|nope)\b)?",
    re.IGNORECASE,
)
"""A question about an option, and its reply: `B? No`."""


def with_states(phrase: str, mentions: Sequence[Mention]) -> list[Mention]:
    """`mentions` of `phrase` with their states; rejection and praise of joined options hold for all of them."""
    states = [_state(phrase, mention) for mention in mentions]
    joined = [_joint(phrase, a, b) for a, b in pairwise(mentions)]
    listed = [bool(_LISTED.search(phrase[max(0, mention.start - 3) : mention.start])) for mention in mentions]
    for k, joint in enumerate(joined):
        listed[k + 1] = listed[k + 1] or (bool(joint) and listed[k])
        if joint and states[k] == "rejected" and states[k + 1] == "named" and _rejects_all(joint, joined, k, listed[k]):
            states[k + 1] = "rejected"
    carried = False
    for k in range(len(joined) - 1, -1, -1):
        follows = carried or (_together(phrase, joined[k], mentions[k + 1]) and _after(phrase, mentions[k + 1]))
        carried = bool(joined[k]) and follows
        if carried and states[k] == "named":
            states[k] = states[k + 1]
    return [
        mention if mention.state == "torn" and state != "rejected" else replace(mention, state=state)
        for mention, state in zip(mentions, states, strict=True)
    ]


def _state(phrase: str, mention: Mention) -> State:
    before = phrase[max(0, mention.start - REACH) : mention.start]
    if asked := _ASKED.match(phrase, mention.end):
        return "affirmed" if asked["yes"] else "rejected" if asked["no"] else "asked"
    if _AFFIRMS_NEXT.search(before):
        return "affirmed"
    if _SUPPOSES_NEXT.search(before):
        return "asked"
    if _REJECTS_NEXT.search(before) or _REJECTED.match(phrase, mention.end):
        return "rejected"
    right = IS_RIGHT.match(phrase, mention.end)
    return "named" if right is None else "asked" if right["question"] else "affirmed"


def _joint(phrase: str, a: Mention, b: Mention) -> str:
    between = JOINT.fullmatch(phrase, a.end, b.start)
    return between[0] if between else ""


def _rejects_all(joint: str, joined: Sequence[str], k: int, listed: bool) -> bool:
    """Whether what joins a rejected mention to the next carries the rejection: not in "not A, B" unless a list goes on.

    `listed`: a colon opens the list ("ruled out: A, B").
    """
    if listed or re.search("or|nor|and|&|/", joint):
        return True
    rest = joined[k + 1 :]
    return any(re.search("or|nor|and|&", later) for later in rest[: rest.index("") if "" in rest else len(rest)])


def _together(phrase: str, joint: str, last: Mention) -> bool:
    """Whether one verb holds for a list that ends with `last`: `A and C are wrong`, but not `D, C is wrong`."""
    return bool(
        re.search("or|nor|and|&", joint)
        or re.match(r"\W*(?:are|were|do|have|all|both)", phrase[last.end : last.end + 9])
    )


def _after(phrase: str, mention: Mention) -> bool:
    """Whether what follows a mention, and not what goes before it, decides its state."""
    return bool(
        _REJECTED.match(phrase, mention.end) or IS_RIGHT.match(phrase, mention.end) or _ASKED.match(phrase, mention.end)
    )
