# my_protocol.py
"""Self-check: every seat answers twice, and only seats that agree with themselves have a vote."""

from collections.abc import Sequence
from typing import Any

from langgraph.graph import END, START, StateGraph

from collabsim import Ask, Message, Reply, RunContext, State, context_of, plurality, protocol, share, slot


def unless_alone(_state: State, run: RunContext) -> tuple[Message, ...] | None:
    """The question once more. None is silence: a seat that is alone just answers."""
    return None if run.alone else run.item.messages


def agree(run: RunContext, *replies: Reply) -> bool:
    """Whether all replies commit to one answer; `1/2` and `0.5` are one."""
    answers = [run.answers.extract(reply.text, reply.finish) for reply in replies]
    given = [answer for answer in answers if answer is not None]
    return len(given) == len(replies) and len(run.answers.group(given)) == 1


async def vote(state: State, runtime: Any) -> dict[str, Any]:
    """The most frequent answer of the seats that agree with themselves; of all seats when none does."""
    run, replies = context_of(runtime), state.get("replies", {})
    first = [replies[slot(seat, 0)] for seat in run.order]  # run.order: the seats that are present
    if run.alone:
        return {"final": share(first)}
    steady = [replies[slot(s, 0)] for s in run.order if agree(run, replies[slot(s, 0)], replies[slot(s, 1)])]
    return {"final": plurality(steady or first, run.answers)}


@protocol(family="text", absent="an absent seat casts no ballot")
def self_check(seats: Sequence[str]) -> StateGraph[State]:
    """Every seat answers twice; those that agree with themselves vote."""
    graph = StateGraph(State)
    graph.add_node("vote", vote)
    for seat in seats:
        first, again = slot(seat, 0), slot(seat, 1)
        graph.add_node(first, Ask(first, seat))
        graph.add_node(again, Ask(again, seat, unless_alone, draw=1))
        graph.add_edge(START, first)
        graph.add_edge(START, again)
    graph.add_edge([slot(seat, draw) for seat in seats for draw in (0, 1)], "vote")
    graph.add_edge("vote", END)
    return graph
