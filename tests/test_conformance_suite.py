"""The conformance suite finds each kind of broken protocol."""

import pytest
from langgraph.graph import END, START, StateGraph

from collabsim import Ask, State, ask, context_of, last_replies, protocol, share, slot
from collabsim.nodes.voting import plurality
from collabsim.testing import check_protocol


def vote_graph(seats, vote, prompt=None):
    graph = StateGraph(State)
    for seat in seats:
        node = Ask(slot(seat, 0), seat) if prompt is None else Ask(slot(seat, 0), seat, prompt)
        graph.add_node(node.node, node)
        graph.add_edge(START, node.node)
    graph.add_node("vote", vote)
    graph.add_edge([slot(seat, 0) for seat in seats], "vote")
    graph.add_edge("vote", END)
    return graph


def fails(build, message, **how):
    with pytest.raises(AssertionError, match=message):
        check_protocol(build, **how)


def test_a_sound_protocol_of_ten_lines_passes():
    async def vote(state, runtime):
        run = context_of(runtime)
        return {"final": plurality(last_replies(state, run).values(), run.answers)}

    check_protocol(lambda seats: vote_graph(seats, vote))


def test_a_protocol_in_which_the_first_seat_decides_is_found():
    async def first_of_pool(state, runtime):
        run = context_of(runtime)
        first = next((seat for seat in run.pool if seat in run.present), None)
        return {"final": share([last_replies(state, run)[first]]) if first else ()}

    fails(lambda seats: vote_graph(seats, first_of_pool), "with seats as")


def test_a_protocol_that_speaks_for_nobody_is_found():
    async def invent(state, runtime):
        return {"final": (("Answer: 7", 1.0),)}

    fails(lambda seats: vote_graph(seats, invent), "is not the floor without a call|but the seat alone")


def test_a_protocol_that_breaks_on_a_small_coalition_is_found():
    async def third(state, runtime):
        return {"final": share([list(last_replies(state, context_of(runtime)).values())[2]])}

    fails(lambda seats: vote_graph(seats, third), "failed")


def test_a_protocol_that_words_opening_answers_itself_is_found():
    def reworded(state, run):
        return (("user", "Quick: " + run.item.messages[0].content),)

    async def vote(state, runtime):
        run = context_of(runtime)
        return {"final": share(list(last_replies(state, run).values())[:1])}

    fails(lambda seats: vote_graph(seats, vote, reworded), "but the seat alone|with seats as|calls")


def test_a_protocol_that_makes_more_calls_than_it_declares_is_found():
    async def vote(state, runtime):
        run = context_of(runtime)
        for seat in run.order:
            await ask(runtime, seat, run.item.messages, draw=1)
        return {"final": plurality(last_replies(state, run).values(), run.answers)}

    declared = protocol(calls=lambda present: present)(lambda seats: vote_graph(seats, vote))
    fails(declared, "calls, declared")


def test_a_protocol_that_keeps_state_between_runs_is_found():
    remembered = []

    async def vote(state, runtime):
        run = context_of(runtime)
        replies = list(last_replies(state, run).values())
        remembered.extend(replies)
        return {"final": share(remembered[-3:]) if replies else ()}

    fails(lambda seats: vote_graph(seats, vote), "but the seat alone|with seats as|among other runs|by itself")


def test_a_protocol_in_which_silence_counts_is_found():
    async def vote(state, runtime):
        run = context_of(runtime)
        replies = list(last_replies(state, run).values())
        silent = [reply for reply in replies if not reply.text]
        return {"final": (("Answer: -1", 1.0),) if silent and replies[1:] else plurality(replies, run.answers)}

    fails(lambda seats: vote_graph(seats, vote), "which says nothing")


def test_a_node_that_leads_nowhere_is_found():
    async def nothing(state):
        return None

    async def vote(state, runtime):
        run = context_of(runtime)
        return {"final": plurality(last_replies(state, run).values(), run.answers)}

    def build(seats):
        graph = vote_graph(seats, vote)
        graph.add_node("lost", nothing)
        graph.add_edge(START, "lost")
        return graph

    fails(build, "no path leads from \\['lost'\\]")
