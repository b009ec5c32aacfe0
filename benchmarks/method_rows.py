"""One collaboration method beside the best member of its pool: the row of a table, and the table.

In: a finished sweep, its run folder, the pool's best member. Out: plain JSON (`row_of`), and Markdown (`write_table`).
The best member is chosen on dev items. Its self-consistency is a vote among as many of its own samples as cost the tokens
of one run of the method with everybody present, read and written, each sample read anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from recording import RESULTS, record

from collabsim import Pool, Seat, SweepResult, System
from collabsim.coalitions.calls_kept import KeptCalls, read_calls
from collabsim.coalitions.intervals import Estimate, mean_interval
from collabsim.coalitions.masks import full
from collabsim.episode import Episode
from collabsim.errors import MissingOutcomesError
from collabsim.loop import run_sync
from collabsim.run_folder import OUTCOMES_FILE, write_json
from collabsim.store import GenerationStore
from collabsim.system.execute import RunRequest, run_all
from collabsim.system.fitting import afit
from collabsim.tasks import Task

TEMPERATURE = 0.7
"""Of samples: those of the best member, and those that a method needs."""


@dataclass
class BestMember:
    """The member of a pool that is best alone on dev, and votes among its own samples on the test items."""

    seat: Seat
    task: Task
    store: GenerationStore
    own: list[Episode]
    """Its own answers to the test items, sampled as the pool says."""
    votes: dict[int, np.ndarray] = field(default_factory=dict)
    """Outcomes of votes among so many samples, [items]."""

    @staticmethod
    def of(pool: Pool, task: Task, store: GenerationStore) -> BestMember:
        """Choose it and let it answer. Raises `MissingOutcomesError` when calls failed."""
        system = System("majority_vote", pool, store=store)
        system.study([*task.items, *task.dev])
        scores = run_sync(afit(system, task.dev)).dev_scores
        best = max(pool, key=lambda name: scores[name])  # the first of equals, in the order of the pool
        own = _episodes(system, (RunRequest(item, seat=best) for item in task.items))
        return BestMember(pool[best], task, store, own)

    @property
    def tokens(self) -> float:
        """Tokens of one answer, read and written; mean over the items."""
        return fmean(_tokens(episode) for episode in self.own)

    def samples_for(self, tokens: float) -> int:
        """How many answers cost about so many tokens; at least 1."""
        return max(1, round(tokens / self.tokens))

    def vote(self, samples: int) -> np.ndarray:
        """Outcomes of a vote among so many samples, [items]; a single one is the member's own answer."""
        if samples == 1:
            return _outcomes(self.own)
        if samples not in self.votes:
            sampling = self.seat.sampling.replace(temperature=TEMPERATURE)
            # A seat's name is part of its seed: k samples are the first k of any more.
            names = [f"sample-{k}" for k in range(samples)]
            pool = Pool({name: replace(self.seat, name=name, sampling=sampling) for name in names})
            system = System("majority_vote", pool, store=self.store)
            self.votes[samples] = _outcomes(_episodes(system, map(RunRequest, self.task.items)))
        return self.votes[samples]


def _episodes(system: System, requests: Iterable[RunRequest]) -> list[Episode]:
    return [run.episode for run in run_sync(run_all(system, requests))]


def _tokens(episode: Episode) -> int:
    return sum(call.usage.prompt_tokens + call.usage.completion_tokens for call in episode.calls)


def _outcomes(episodes: Sequence[Episode]) -> np.ndarray:
    failed = [episode.error for episode in episodes if episode.error is not None]
    if failed:
        raise MissingOutcomesError(
            f"{len(failed)} runs of the best member failed (first: {failed[0].kind}: {failed[0].message}); run the same "
            "command again to retry them"
        )
    return np.array([episode.outcome for episode in episodes], dtype=float)


def calls_checked(system: System, runs: Sequence[KeptCalls]) -> dict[str, Any]:
    """Calls of the runs against what the protocol documents for a coalition of that size.

    `documented` and `made` (mean over items) are those with everybody present; `exact`: every run of every coalition made
    as many as documented; `exceeded`: runs that made more.
    """
    declared = system.protocol.calls
    if declared is None:
        raise ValueError(f"{system.protocol.name} documents no number of calls")

    def bound(who: str) -> int:
        return int(declared(len(who.split("+")) if who else 0, **system.options))

    everybody = "+".join(system.pool)
    gaps = [bound(run.who) - run.calls for run in runs]
    return {
        "documented": bound(everybody),
        "made": fmean(run.calls for run in runs if run.who == everybody),
        "exact": not any(gaps),
        "exceeded": sum(gap < 0 for gap in gaps),
    }


def row_of(system: System, result: SweepResult, best: BestMember) -> dict[str, Any]:
    """What the table says about a method. `result` is of a sweep in a run folder, over the items of `best`."""
    values, table = result.values, result.table
    assert result.out is not None
    runs = [run for run in read_calls(result.out / OUTCOMES_FILE) if run.kind == "coalition"]
    together = [run for run in runs if run.who == "+".join(system.pool)]
    tokens = fmean(run.tokens for run in together)
    samples = best.samples_for(tokens)
    places = {item.id: place for place, item in enumerate(best.task.items)}
    voted = best.vote(samples)[[places[item] for item in table.item_ids]]
    outcomes = table.column(full(len(table.players)))
    return {
        "method": system.protocol.name,
        "family": system.protocol.family,
        "options": values["definitions"]["options"],
        "roles": values["definitions"]["roles"],
        "items": values["n_items"],
        "v": values["v"],
        "value": float(outcomes.mean()),
        "best": best.seat.name,
        "best_alone": float(_outcomes(best.own).mean()),
        "samples": samples,
        "self_consistency": float(voted.mean()),
        "gain": _json(mean_interval(outcomes - voted)),
        "individual": values["individual"],
        "shapley": values["shapley"],
        "calls": calls_checked(system, runs),
        "tokens": tokens,
        "tokens_written": fmean(run.completion_tokens for run in together),
        "cost": values["cost"],
    }


def _json(estimate: Estimate) -> dict[str, Any]:
    return {**asdict(estimate), "ci95": list(estimate.ci95)}


def write_table(
    rows: Sequence[Mapping[str, Any]], options: Mapping[str, str], command: str, *notes: str, folder: Path = RESULTS
) -> Path:
    """Write `methods.md` and `methods.json` into `folder`, the best method first. `options`: what is shown of each."""
    ranked = sorted(rows, key=lambda row: (-row["value"], row["method"]))
    members = list(dict.fromkeys(name for row in ranked for name in row["shapley"]))
    header = [
        *("method", "family", "options", "v(N)", "best member alone", "its self-consistency", "v(N) minus that"),
        *(f"Shapley of {name}" for name in members),
        *("calls an item: made, documented", "tokens an item"),
    ]
    cells = [
        (
            row["method"],
            row["family"],
            options[row["method"]],
            f"{row['value']:.3f}",
            f"{row['best_alone']:.3f}",
            f"{row['self_consistency']:.3f} (of {row['samples']})",
            shown(row["gain"]),
            *(shown(row["shapley"].get(name)) for name in members),
            calls_shown(row["calls"]),
            f"{row['tokens']:.0f}",
        )
        for row in ranked
    ]
    title = "Every method on one pool of small real models"
    path = record("methods", title, header, cells, *notes, command=command, folder=folder)
    write_json(path.with_suffix(".json"), ranked)
    return path


def shown(estimate: Mapping[str, Any] | None) -> str:
    """An estimate with its interval; a dash where there is none."""
    if estimate is None:
        return "-"
    value, low, high = (round(number, 3) + 0.0 for number in (estimate["value"], *estimate["ci95"]))  # no -0.000
    return f"{value:.3f}{' rare' if estimate['rare'] else ''} [{low:.3f}, {high:.3f}]"


def calls_shown(calls: Mapping[str, Any]) -> str:
    """`3.0 = 3` where every run made what is documented, `2.4 <= 3` where that is an upper bound."""
    sign = "=" if calls["exact"] else "<=" if not calls["exceeded"] else f"({calls['exceeded']} runs above)"
    return f"{calls['made']:.1f} {sign} {calls['documented']}"
