"""Rank and fuse: seats answer, a ranker puts the answers in order, a fuser merges the best of them.

Ranking is by pairs (each pair compared once, most wins first) or of the whole list at a time; answers that tie, or that
the ranker does not name, stay in the run's own order. The best `top_k` go to the fuser, best first; with one answer to
fuse it is final as it stands. Ranker and fuser are roles: fixed helpers, or the best present seat. A single present seat,
or a single answer, needs neither. (After LLM-Blender, arXiv 2306.02561, with prompted models in place of trained ones.)
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Any, Literal

from langgraph.graph import END, StateGraph
from pydantic import Field

from collabsim.context import RunContext
from collabsim.episode import Reply
from collabsim.nodes.asking import AskRole, ask
from collabsim.nodes.current_run import context_of
from collabsim.nodes.quoting import check_placeholder, fill, quote_all, with_answers
from collabsim.nodes.state import State, last_replies, slot
from collabsim.nodes.voting import share
from collabsim.playground import playground_graph
from collabsim.protocols import protocol
from collabsim.request import Messages, with_text
from collabsim.scorers.reading.text import final_part

from .prompt_router import chosen_number
from .rounds import add_round, join, new_graph

COMPARE = "Two answers were given:\n\n{answers}\n\nWhich one is better? Reply with its number only."
RANK = "These answers were given:\n\n{answers}\n\nReply with their numbers only, from the best to the worst."
FUSE = "These answers were given, the most trusted one first:\n\n{answers}\n\nMerge them into the best answer."
RANK_DRAW = 1  # a ranker or fuser that is also a seat keeps draw 0 for its own answer
FUSE_DRAW = 2


class RankedState(State, total=False):
    """The shared state, and the seats with an answer, best first."""

    ranked: list[str]


def named_order(text: str, count: int) -> list[int]:
    """The numbers in 1..count in the order in which a reply first names them; those it does not name follow."""
    numbers = [int(number) for number in re.findall(r"(?<![\w.])\d+(?![\w]|\.\d)", text)]
    return list(dict.fromkeys([*(number for number in numbers if 1 <= number <= count), *range(1, count + 1)]))


@dataclass(frozen=True, slots=True)
class Rank:
    """The node of the ranker; writes `ranked`."""

    node: str
    ranking: Literal["pairwise", "listwise"]
    text: str
    """Words around `{answers}`."""
    quote_limit: int

    def __post_init__(self) -> None:
        check_placeholder(self.text, "answers")

    async def __call__(self, state: RankedState, runtime: Any) -> dict[str, list[str]]:
        """Rank the answers of all present seats; no call where there are fewer than two."""
        run = context_of(runtime)
        answers = with_answers(last_replies(state, run), run)
        holder = run.roles.get("ranker")
        if run.alone or len(answers) < 2 or holder is None:
            return {"ranked": list(answers)}
        replies = list(answers.values())
        by_pairs = self.ranking == "pairwise"
        places = await (self._by_pairs if by_pairs else self._by_list)(runtime, run, holder, replies)
        return {"ranked": [list(answers)[place] for place in places]}

    async def _by_pairs(self, runtime: Any, run: RunContext, holder: str, replies: list[Reply]) -> list[int]:
        pairs = list(combinations(range(len(replies)), 2))
        verdicts = await asyncio.gather(
            *(self._number(runtime, run, holder, [replies[first], replies[second]]) for first, second in pairs)
        )
        wins = [0.0] * len(replies)
        for (first, second), number in zip(pairs, verdicts, strict=True):
            wins[first] += 0.5 if number is None else number == 1
            wins[second] += 0.5 if number is None else number == 2
        return sorted(range(len(replies)), key=lambda place: -wins[place])

    async def _number(self, runtime: Any, run: RunContext, holder: str, pair: list[Reply]) -> int | None:
        reply = await self._ask(runtime, run, holder, pair)
        return chosen_number(reply, 2)

    async def _by_list(self, runtime: Any, run: RunContext, holder: str, replies: list[Reply]) -> list[int]:
        reply = await self._ask(runtime, run, holder, replies)
        return [number - 1 for number in named_order(reply, len(replies))]

    async def _ask(self, runtime: Any, run: RunContext, holder: str, replies: list[Reply]) -> str:
        quoted = quote_all(replies, limit=self.quote_limit)
        messages = with_text(run.item.messages, fill(self.text, answers=quoted))
        reply = await ask(runtime, holder, messages, draw=RANK_DRAW, node=self.node)
        return (final_part(reply.text) or "") if isinstance(reply, Reply) else ""


@dataclass(frozen=True, slots=True)
class Fuse:
    """The question with the best answers, best first: the prompt of the fuser."""

    text: str
    top_k: int
    quote_limit: int

    def __post_init__(self) -> None:
        check_placeholder(self.text, "answers")

    def __call__(self, state: RankedState, run: RunContext) -> Messages | None:
        """None when there is at most one answer to fuse."""
        best = state.get("ranked", [])[: self.top_k]
        if run.alone or len(best) < 2:
            return None
        replies = last_replies(state, run)
        quoted = quote_all((replies[seat] for seat in best), limit=self.quote_limit)
        return with_text(run.item.messages, fill(self.text, answers=quoted))


async def finish(state: RankedState, runtime: Any) -> dict[str, Any]:
    """The fused answer, else the best ranked one, else a single seat's own reply."""
    run = context_of(runtime)
    replies = state.get("replies", {})
    fused = replies.get(slot("fuser", FUSE_DRAW))
    if fused is not None:
        return {"final": share([fused])}
    best = run.order if run.alone else state.get("ranked", [])
    return {"final": share([replies[slot(seat, 0)] for seat in best[:1]])}


def calls(present: int, *, ranking: str, top_k: int, **_: Any) -> int:
    """Upper bound of the calls of one run."""
    if present <= 1:
        return present
    comparisons = present * (present - 1) // 2 if ranking == "pairwise" else 1
    return present + comparisons + (top_k > 1)


@protocol(
    family="text",
    roles=("ranker", "fuser"),
    absent="an absent seat gives no answer to rank; if it would rank or fuse, the next present seat does",
    calls=calls,
)
def rank_and_fuse(
    seats: Sequence[str],
    *,
    ranking: Literal["pairwise", "listwise"] = "pairwise",
    top_k: Annotated[int, Field(ge=1)] = 3,
    quote_limit: Annotated[int, Field(ge=20)] = 2000,
    compare: str = COMPARE,
    rank: str = RANK,
    fuse: str = FUSE,
) -> StateGraph[Any, Any, Any, Any]:
    """Seats answer, a ranker orders the answers, a fuser merges the best `top_k` (all, when there are fewer)."""
    graph = new_graph(RankedState)
    opening = add_round(graph, seats)
    graph.add_node("rank", Rank("rank", ranking, compare if ranking == "pairwise" else rank, quote_limit))
    graph.add_node("fuse", AskRole("fuse", "fuser", Fuse(fuse, top_k, quote_limit), draw=FUSE_DRAW))
    graph.add_node("finish", finish)
    join(graph, opening, "rank")
    graph.add_edge("rank", "fuse")
    graph.add_edge("fuse", "finish")
    graph.add_edge("finish", END)
    return graph


graph = playground_graph(rank_and_fuse)
