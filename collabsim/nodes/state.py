"""The state of a protocol's graph, and how replies are kept in it.

Replies live in one dictionary under a merging reducer, by `slot(seat, draw)`: neither the position of a node nor the
order in which nodes finish can matter. Slots are strings because LangGraph's tools show states as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypedDict

from collabsim.episode import Final, Reply

if TYPE_CHECKING:
    from collabsim.context import RunContext

Replies: TypeAlias = dict[str, Reply]


def slot(owner: str, draw: int) -> str:
    """The key of a seat's (or role's) reply for one draw: `a-0`, `judge-2`; also the name of the seat's node."""
    return f"{owner}-{draw}"


def merge(left: Mapping[str, Reply], right: Mapping[str, Reply]) -> Replies:
    """Reducer: both dictionaries in one."""
    return {**left, **right}


class State(TypedDict, total=False):
    """The state that protocols of this project share; a protocol may add keys of its own."""

    replies: Annotated[Replies, merge]
    final: Final


def last_replies(state: State, run: RunContext) -> dict[str, Reply]:
    """The latest reply of each present seat that spoke, by seat, in the run's order."""
    latest: dict[str, tuple[int, Reply]] = {}
    for key, reply in state.get("replies", {}).items():
        owner, _, draw = key.rpartition("-")
        if owner not in latest or latest[owner][0] < int(draw):
            latest[owner] = (int(draw), reply)
    return {seat: latest[seat][1] for seat in run.order if seat in latest}
