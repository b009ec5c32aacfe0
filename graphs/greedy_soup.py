"""Greedy soup: the mean of those seats' weights that help on dev items answers.

For every coalition, from the best seat by dev score on, a seat goes in when the soup's dev score does not fall (recipe 1
of Wortsman et al. 2022, arXiv 2203.05482). It is chosen anew for every coalition, on dev only, before a sweep; soups
that several coalitions meet are scored once. At most 2^n - n - 1 soups are scored, each on all dev items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from langgraph.graph import StateGraph

from collabsim.context import RunContext
from collabsim.errors import MissingOutcomesError, ProtocolError
from collabsim.item import Item
from collabsim.models.merging import MergeRecipe
from collabsim.playground import playground_graph
from collabsim.protocols import protocol
from collabsim.roles import by_rank
from collabsim.system.execute import CONCURRENCY, RunRequest, run_all
from collabsim.system.system import System

from .merged import ABSENT, AnswerAsOne, merged_graph
from .soup import soup


def named(seats: Sequence[str]) -> str:
    """A coalition's name in what was fitted."""
    return "+".join(sorted(seats))


def chosen(run: RunContext) -> Sequence[str]:
    """The seats of this coalition's soup. Raises `ProtocolError` when none was chosen for it on dev."""
    if len(run.present) < 2 or not run.fitted:  # nothing is fitted in LangGraph's own tools; a system refuses to run so
        return run.order
    soups = run.fitted.get("soups", {})
    selection: Sequence[str] | None = soups.get(named(run.order))
    if selection is None:
        raise ProtocolError(
            f"greedy_soup: no soup of {named(run.order)} was chosen on dev; add `dev: {{limit: 50, seed: 2}}` under 'task:'"
        )
    return selection


@dataclass(slots=True)
class _Kitchen:
    """Dev scores of uniform soups, each measured once."""

    system: System
    items: Sequence[Item]
    seed: int
    concurrency: int
    scores: dict[str, float]

    async def score(self, seats: Sequence[str]) -> float:
        name = named(seats)
        if name not in self.scores:
            requests = (RunRequest(item, frozenset(seats), run_seed=self.seed) for item in self.items)
            runs = await run_all(self.system, requests, concurrency=self.concurrency)
            episodes = [run.episode for run in runs]
            for episode in episodes:
                if episode.error is not None:
                    raise MissingOutcomesError(
                        f"the soup of {name} has no score on a dev item ({episode.error.kind}: {episode.error.message}); run "
                        "the same command again"
                    )
            self.scores[name] = sum(episode.outcome or 0.0 for episode in episodes) / len(episodes)
        return self.scores[name]

    async def greedy(self, ranked: Sequence[str]) -> list[str]:
        """The soup of these seats, best first."""
        soup = [ranked[0]]
        for seat in ranked[1:]:
            if await self.score([*soup, seat]) >= await self.score(soup):
                soup.append(seat)
        return soup


async def choose_on_dev(
    system: System, dev_items: Sequence[Item], seed: int, *, concurrency: int = CONCURRENCY
) -> dict[str, Any]:
    """`fit`: the soup of every coalition of two or more seats, and the dev scores that it was chosen by."""
    uniform = replace(system, protocol=soup, options={"base": system.options["base"]})
    scores = {named([seat]): score for seat, score in system.fitted.dev_scores.items()}
    kitchen = _Kitchen(uniform, dev_items, seed, concurrency, scores)
    soups = {}
    seats = tuple(sorted(system.pool))
    for mask in sorted(range(1 << len(seats)), key=lambda mask: (mask.bit_count(), mask)):
        present = tuple(seat for place, seat in enumerate(seats) if mask >> place & 1)
        if len(present) > 1:
            soups[named(present)] = await kitchen.greedy(by_rank(present, system.ranks))
    return {"soups": soups, "dev_scores": kitchen.scores}


@protocol(
    family="weights",
    needs=("dev", "weights", "same_architecture", "same_tokenizer"),
    absent=ABSENT,
    calls=lambda present, **_: 1,  # noqa: ARG005
    fit=choose_on_dev,
    fit_calls=lambda seats, **_: 2**seats - seats - 1,
    empty="base",
    per_coalition=True,
)
def greedy_soup(
    seats: Sequence[str],  # noqa: ARG001 (who is merged is settled in the run)
    *,
    base: str = "base",
) -> StateGraph[Any, Any, Any, Any]:
    """One model with the mean of those seats' weights that help on dev items answers, chosen for each coalition."""
    return merged_graph(AnswerAsOne("soup", MergeRecipe("mean"), base, chosen))


graph = playground_graph(greedy_soup)
