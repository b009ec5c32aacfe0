"""Computes `values.json` from outcomes: the value of every player, its uncertainty, and the definitions behind it.

In: complete tables and the plan they come from. Out: one JSON-able dictionary. All intervals are for the population of
items, with items as the sampling unit; the definitions behind every number (floor, alone, absent, roles) stand beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from collabsim.coalitions import approximators, masks, values
from collabsim.coalitions.answer_rates import answer_rates, warnings
from collabsim.coalitions.intervals import Estimate, estimates, mean_interval, pairwise_differences
from collabsim.coalitions.orders import Chains, evaluate_orders
from collabsim.coalitions.plan import Plan
from collabsim.coalitions.players import Players
from collabsim.coalitions.relation import Relation, relation
from collabsim.coalitions.table import GameTable
from collabsim.coalitions.values import Floats
from collabsim.system.system import System

if TYPE_CHECKING:
    from collabsim.tasks import Task

INTERVALS = (
    "95% for the population of items (items are the sampling unit; conservative where rare: under 15 items tell)"
)


def valuate(
    table: GameTable,
    alone: GameTable,
    plan: Plan,
    players: Players,
    *,
    system: System,
    task: Task,
    dropped: int = 0,
) -> dict[str, Any]:
    """All values of a sweep without its cost. Raises `MissingOutcomesError` when the tables are not complete."""
    individual_MN = _individual(alone, players)
    results = _estimators(plan)(table, plan)
    rates = answer_rates(table, alone, plan, task)
    return {
        "players": list(players.names),
        "n_items": len(table.item_ids),
        "dropped_items": dropped,
        "method": plan.method,
        "v": {masks.label(table.players, mask): v for mask, v in table.means(plan.common_masks()).items()},
        **{name: _by_player(players, estimate) for name, estimate in results["estimates"].items()},
        "individual": _by_player(players, _own_estimates(individual_MN)),
        "interaction": results.get("interaction"),
        "efficiency_gap": results["efficiency_gap"],
        "differences": _differences(players.names, results.get("shapley"), plan.seed),
        "relation": _relation(players.names, individual_MN, results),
        "rates": rates,
        "warnings": warnings(rates, task),
        "definitions": definitions(system, plan, players),
    }


def _individual(alone: GameTable, players: Players) -> Floats:
    """Scores of the players' own answers, [m, n]; a player with several seats has their mean, one with none NaN."""
    columns = {seat: alone.column(1 << k) for k, seat in enumerate(alone.players)}
    none = np.full(len(alone.item_ids), np.nan)
    own = [[columns[seat] for seat in players.own_seats(name)] for name in players.names]
    return np.stack([np.mean(scores, axis=0) if scores else none for scores in own], axis=1)


def _with_answers(individual: Floats) -> list[bool]:
    """For each player, whether it has answers of its own."""
    return [not np.isnan(column).any() for column in individual.T]


def _own_estimates(individual: Floats) -> tuple[Estimate | None, ...]:
    """An estimate for every player that has answers of its own."""
    answers = _with_answers(individual)
    remaining = iter(estimates(individual[:, answers], support=(0.0, 1.0)) if any(answers) else ())
    return tuple(next(remaining) if has else None for has in answers)


# ---- one estimator per method: (table, plan) -> estimates by name, per-item matrices, efficiency gap -----------------


def _estimators(plan: Plan) -> Any:
    return {"exact": _exact, "loo": _leave_one_out, "permutation": _permutation}.get(plan.method, _approximated)


def _exact(table: GameTable, plan: Plan) -> dict[str, Any]:
    outcomes_MS, n = table.dense(), plan.n_players
    shapley_MN = values.shapley(outcomes_MS, table.players)
    return {
        "shapley": shapley_MN,
        "leave_one_out": values.leave_one_out(outcomes_MS, n),
        "after_two": values.shapley_after_two(outcomes_MS),
        "interaction": _pairs(table.players, values.interaction(outcomes_MS)),
        "efficiency_gap": values.efficiency_gap(shapley_MN, outcomes_MS),
        "estimates": {
            "shapley": estimates(shapley_MN),
            "leave_one_out": estimates(values.leave_one_out(outcomes_MS, n)),
            "leave_one_out_split": estimates(values.leave_one_out_split(outcomes_MS, n)),
            "banzhaf": estimates(values.banzhaf(outcomes_MS)),
        },
    }


def _leave_one_out(table: GameTable, plan: Plan) -> dict[str, Any]:
    n = plan.n_players
    columns = {mask: table.column(mask) for mask in plan.common_masks()}
    leave_one_out_MN = values.leave_one_out(columns, n, table.players)
    return {
        "leave_one_out": leave_one_out_MN,
        "efficiency_gap": values.efficiency_gap(leave_one_out_MN, columns),
        "estimates": {
            "leave_one_out": estimates(leave_one_out_MN),
            "leave_one_out_split": estimates(values.leave_one_out_split(columns, n)),
        },
    }


def _permutation(table: GameTable, plan: Plan) -> dict[str, Any]:
    chains = evaluate_orders({item: plan.orders[item] for item in table.item_ids}, table.outcome)
    shapley_MN = chains.shapley()
    ends = {0: table.column(0), masks.full(plan.n_players): table.column(masks.full(plan.n_players))}
    return {
        "shapley": shapley_MN,
        "after_two": chains.marginals(after=2),
        "efficiency_gap": values.efficiency_gap(shapley_MN, ends),
        "estimates": {
            "shapley": estimates(shapley_MN, marginals=chains.marginals(after=1)),
            "leave_one_out": _last_places(chains),
        },
    }


def _last_places(chains: Chains) -> tuple[Estimate | None, ...]:
    """Leave-one-out from the items in whose order a player came last: a random share of them, at no further run."""
    marginals, last = chains.marginals(), chains.orders[:, -1:]
    by_player: list[Estimate | None] = []
    for player in range(chains.orders.shape[1]):
        own_M = marginals[last[:, 0] == player, player]
        by_player.append(mean_interval(own_M) if len(own_M) else None)
    return tuple(by_player)


def _approximated(table: GameTable, plan: Plan) -> dict[str, Any]:
    def of_item(item: str) -> Floats:
        state = approximators.item_seed(plan.seed, item)
        return approximators.values(plan.method, plan.n_players, plan.budget, state, lambda m: table.outcome(item, m))

    shapley_MN = np.stack([of_item(item) for item in table.item_ids])
    ends = {0: table.column(0), masks.full(plan.n_players): table.column(masks.full(plan.n_players))}
    return {
        "shapley": shapley_MN,
        "efficiency_gap": values.efficiency_gap(shapley_MN, ends),
        "estimates": {"shapley": estimates(shapley_MN)},
    }


# ---- JSON ------------------------------------------------------------------------------------------------------------


def estimate_json(estimate: Estimate | None) -> dict[str, Any] | None:
    """An estimate in the form of `values.json`; None where there is none."""
    return None if estimate is None else {**asdict(estimate), "ci95": list(estimate.ci95)}


def _by_player(players: Players, by_bit: Sequence[Estimate | None]) -> dict[str, Any]:
    return {name: estimate_json(estimate) for name, estimate in zip(players.names, by_bit, strict=True)}


def _pairs(names: Sequence[str], interaction: Floats) -> dict[str, Any]:
    """Pairwise interaction by `a+b`."""
    n = len(names)
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    columns = np.stack([interaction[:, i, j] for i, j in pairs], axis=1) if pairs else np.empty((len(interaction), 0))
    labels = [masks.label(names, 1 << i | 1 << j) for i, j in pairs]
    return dict(zip(labels, map(estimate_json, estimates(columns)), strict=True))


def _differences(names: Sequence[str], shapley: Floats | None, seed: int) -> list[dict[str, Any]] | None:
    """Differences of members in Shapley value: all pairs, with intervals that hold for all of them at once."""
    if shapley is None:
        return None
    return [
        {
            "first": names[pair.first],
            "second": names[pair.second],
            "value": pair.estimate.value,
            "ci95": list(pair.estimate.ci95),
            "differs": pair.differs,
        }
        for pair in pairwise_differences(shapley, seed=seed)
    ]


def _relation(names: Sequence[str], individual: Floats, matrices: dict[str, Any]) -> dict[str, Any]:
    """The relation of individual and compositional strength; the compositional value is Shapley, or else leave-one-out.

    Over the players that have answers of their own.
    """
    answers = _with_answers(individual)
    if not all(answers):
        names = [name for name, has in zip(names, answers, strict=True) if has]
        kinds = ("shapley", "leave_one_out", "after_two")
        matrices = {kind: matrices[kind][:, answers] for kind in kinds if matrices.get(kind) is not None}
        individual = individual[:, answers]
    value = matrices["shapley"] if "shapley" in matrices else matrices["leave_one_out"]
    result: Relation = relation(
        individual, value, leave_one_out=matrices.get("leave_one_out"), shapley_after_two=matrices.get("after_two")
    )
    counts = {"concordant": 0, "inverted": 0, "undecided": 0}
    for pair in result.pairs:
        counts[pair.verdict] += 1
    correlations = {name: asdict(entry) for name, entry in result.correlations.items()}
    if "shapley" not in matrices:
        correlations.pop("shapley")
    return {
        "verdict": result.verdict,
        "value": "shapley" if "shapley" in matrices else "leave_one_out",
        "pairs": counts,
        "inverted": [[names[p.first], names[p.second]] for p in result.pairs if p.verdict == "inverted"],
        "spearman": result.correlations["shapley"].spearman,
        "correlations": correlations,
    }


def definitions(system: System, plan: Plan, players: Players) -> dict[str, Any]:
    """The definitions of the numbers, printed with every result."""
    by = "by dev score" if system.fitted.dev_scores else "in the item's own order"
    chosen = {role: system.roles.get(role, f"the first present seat {by}") for role in system.protocol.roles}
    return {
        "protocol": system.protocol.name,
        "options": {
            name: value for name, value in system.options.items() if isinstance(value, str | int | float | bool)
        },
        "players": {name: list(seats) for name, seats in players.seats.items()},
        **system.meanings(),
        "roles": chosen,
        "intervals": INTERVALS,
        "seed": plan.seed,
    }
