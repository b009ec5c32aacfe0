"""Voting over replies.

In: replies in a fixed order and the item's answer reader. Out: a final output. Ballots are grouped by the scorer's own
equivalence (`1/2` and `0.5` are one answer); replies without an answer cast no ballot. A tie is several outputs of equal
weight, whose outcome is their expected score: no seat gains from being listed first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from collabsim.episode import Final, Output, Reply
from collabsim.item import Answer, Answers


def plurality(replies: Iterable[Reply], answers: Answers) -> Final:
    """The most frequent answer, each answer shown by the first reply that gave it; nothing when no reply has one."""
    return share(leading(replies, answers)[0])


def leading(replies: Iterable[Reply], answers: Answers) -> tuple[list[Reply], int]:
    """The first reply of each most frequent answer, and how many gave it; `([], 0)` when no reply has an answer."""
    voters: list[Reply] = []
    ballots: list[Answer] = []
    for reply in replies:
        answer = answers.extract(reply.text, reply.finish)
        if answer is not None:
            voters.append(reply)
            ballots.append(answer)
    if not ballots:
        return [], 0
    classes = answers.group(ballots)
    most = max(map(len, classes))
    return [voters[members[0]] for members in classes if len(members) == most], most


def share(replies: Sequence[Reply]) -> Final:
    """These replies as final output with equal weights; one reply is simply the final output."""
    return tuple(Output(reply.text, 1 / len(replies), reply.finish) for reply in replies)
