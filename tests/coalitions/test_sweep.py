"""A sweep: what it generates, what it keeps, how it resumes, what it refuses."""

import asyncio
import json
from itertools import permutations
from math import factorial

import numpy as np
import pytest
from scripted import Scripted

from collabsim import GenerationStore, Pool, Seat, SimulatedModel, System, Task, asweep, make_item, sweep
from collabsim.coalitions.masks import names_of
from collabsim.coalitions.progress import Progress
from collabsim.errors import CallError, ConfigError, MissingOutcomesError, StoreError
from collabsim.models.simulation.expectations import debate_score, vote_score

ITEMS = tuple(make_item(f"What is {k} + {k + 3}?", str(2 * k + 3), topic="sums") for k in range(12))
TASK = Task("sums", ITEMS)


def simulated(n, **how):
    return Pool({f"m{k}": SimulatedModel(name=f"m{k}", skill=k - 1.0, **how) for k in range(n)})


def system_of(protocol="majority_vote", n=3, store=None, **how):
    return System(protocol, simulated(n, **how), store=store or GenerationStore(None))


# ---- never generate the same thing twice -----------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5])
async def test_an_exact_sweep_of_a_vote_generates_each_members_answer_once(n):
    system = system_of(n=n)
    result = await asweep(system, TASK, method="exact")
    assert result.values["cost"]["generated"] == n * len(ITEMS) == system.store.generated
    assert result.values["cost"]["runs"] == 2**n * len(ITEMS)
    naive = n * 2 ** (n - 1) * len(ITEMS)
    assert result.values["cost"]["calls"] == naive + n * len(ITEMS)  # and each seat by itself


async def test_a_member_alone_is_worth_its_individual_strength_item_by_item():
    system = system_of("debate", 3, conformity=0.5)
    system.study(ITEMS)
    for item in ITEMS:
        for seat in system.pool:
            assert (await system.arun(item, [seat])).outcome == (await system.alone_on(item, seat)).outcome


async def test_another_protocol_reuses_the_opening_answers():
    store = GenerationStore(None)
    await asweep(system_of("majority_vote", 3, store), TASK)
    before = store.generated
    result = await asweep(system_of("debate", 3, store), TASK)
    openings = 3 * len(ITEMS)
    assert store.generated - before == result.values["cost"]["generated"]
    fresh = await asweep(system_of("debate", 3), TASK)
    assert result.values["cost"]["generated"] == fresh.values["cost"]["generated"] - openings
    assert result.values["shapley"] == fresh.values["shapley"]


async def test_a_second_sweep_from_a_stored_file_asks_no_model(tmp_path):
    def pool(say):
        return Pool({name: Scripted(name, say) for name in "ab"})

    with GenerationStore(tmp_path / "g.sqlite") as store:
        first = await asweep(System("majority_vote", pool("Answer: 5"), store=store), TASK)
    broken = pool(CallError("no engine may start"))
    with GenerationStore(tmp_path / "g.sqlite") as store:
        second = await asweep(System("majority_vote", broken, store=store), TASK)
    assert second.values["cost"]["generated"] == 0
    assert second.values["shapley"] == first.values["shapley"]


# ---- values ----------------------------------------------------------------------------------------------------------


async def test_exact_values_equal_brute_force_over_all_orders():
    result = await asweep(system_of("debate", 4, conformity=0.5), TASK, method="exact")
    names, v = result.values["players"], result.values["v"]
    label = {mask: "+".join(names_of(names, mask)) for mask in range(16)}
    for k, name in enumerate(names):
        total = 0.0
        for order in permutations(range(4)):
            before = sum(1 << player for player in order[: order.index(k)])
            total += v[label[before | 1 << k]] - v[label[before]]
        assert result.values["shapley"][name]["value"] == pytest.approx(total / factorial(4), abs=1e-9)


@pytest.mark.parametrize(("protocol", "expected"), [("majority_vote", vote_score), ("debate", debate_score)])
async def test_outcomes_of_a_simulated_pool_agree_with_the_closed_form(protocol, expected):
    system = system_of(protocol, 3, conformity=0.3)
    items = ITEMS[:4]
    system.study(items)
    for item in items:
        runs = await asyncio.gather(*(system.arun(item, run_seed=seed) for seed in range(120)))
        outcomes = np.array([run.outcome for run in runs])
        wanted = expected([seat.model for seat in system.pool.values()], item)
        assert abs(outcomes.mean() - wanted) < 4 * outcomes.std(ddof=1) / np.sqrt(len(outcomes)) + 1e-9


async def test_permutation_costs_no_more_generations_than_leave_one_out_in_a_vote():
    costs = {}
    for method in ("loo", "permutation"):
        result = await asweep(system_of(n=5), TASK, method=method)
        costs[method] = result.values["cost"]["generated"]
    assert costs["permutation"] == costs["loo"] == 5 * len(ITEMS)


async def test_permutation_agrees_with_exact_within_its_interval():
    items = tuple(make_item(f"What is {k} + {k + 3}?", str(2 * k + 3)) for k in range(60))
    task = Task("sums", items)
    store = GenerationStore(None)
    exact = await asweep(system_of("majority_vote", 4, store), task, method="exact")
    sampled = await asweep(system_of("majority_vote", 4, store), task, method="permutation")
    for name in exact.values["players"]:
        estimate = sampled.values["shapley"][name]
        assert abs(estimate["value"] - exact.values["shapley"][name]["value"]) < 3 * estimate["se"]


async def test_a_shapiq_method_runs_by_name_with_its_budget():
    result = await asweep(system_of(n=5), TASK, method="shapiq:KernelSHAP", budget=20)
    assert result.values["method"] == "shapiq:KernelSHAP"
    assert abs(result.values["efficiency_gap"]) < 1e-6
    assert result.values["cost"]["runs"] <= 20 * len(ITEMS) + 2 * len(ITEMS)


async def test_many_players_are_swept_by_permutation_by_default():
    assert (await asweep(system_of(n=7), TASK)).values["method"] == "permutation"
    assert (await asweep(system_of(n=2), TASK)).values["method"] == "exact"


async def test_seats_with_one_model_can_be_one_player():
    twin, other = SimulatedModel(name="twin"), SimulatedModel(name="other", skill=2.0)
    pool = {"a": twin, "b": other, "c": Seat("c", twin, system="Think.")}
    result = await asweep(System("majority_vote", pool), TASK, players="models")
    assert result.values["players"] == ["a", "b"]
    assert result.values["definitions"]["players"] == {"a": ["a", "c"], "b": ["b"]}


async def test_a_pool_of_one_gets_all_there_is():
    result = await asweep(system_of(n=1), TASK)
    gain = result.values["v"]["m0"] - result.values["v"][""]
    assert result.values["shapley"]["m0"]["value"] == pytest.approx(gain)


async def test_negative_and_zero_values_are_reported_as_they_are():
    pool = {"right": Scripted("r", lambda request: f"Answer: {gold(request)}"), "wrong": Scripted("w", "Answer: -1")}

    def gold(request):
        return next(item.gold_text for item in ITEMS if item.question in request.messages[0].content)

    result = await asweep(System("majority_vote", pool), TASK)
    assert result.values["shapley"]["right"]["value"] == pytest.approx(0.75)
    assert result.values["shapley"]["wrong"]["value"] == pytest.approx(-0.25)


# ---- keeping and resuming --------------------------------------------------------------------------------------------


class Stop(Progress):
    """Interrupts a sweep after some runs."""

    def __init__(self, after):
        self.left = after

    def advance(self, episode):
        self.left -= 1
        if self.left == 0:
            raise StoreError("stopped by the test")


async def test_a_stopped_sweep_goes_on_where_it_was(tmp_path):
    undisturbed = await asweep(system_of(), TASK)
    store = GenerationStore(tmp_path / "g.sqlite")
    with pytest.raises(StoreError, match="stopped"):
        await asweep(system_of(store=store), TASK, out=tmp_path / "run", progress=Stop(40))
    counts = []

    class Count(Progress):
        def start(self, total, done):
            counts.append((total, done))

    result = await asweep(system_of(store=store), TASK, out=tmp_path / "run", progress=Count())
    (total, done), n_seats = counts[0], 3
    assert total == (2**n_seats + n_seats) * len(ITEMS)
    assert done >= 40
    assert result.values["shapley"] == undisturbed.values["shapley"]
    assert store.generated == n_seats * len(ITEMS)  # over both sessions: nothing was made twice
    assert result.values["cost"]["generated"] <= store.generated


async def test_values_json_holds_what_the_sweep_returned(tmp_path):
    result = await asweep(system_of(), TASK, out=tmp_path / "run")
    assert json.loads((tmp_path / "run" / "values.json").read_text()) == json.loads(json.dumps(result.values))


async def test_the_seconds_of_all_sessions_are_added_up(tmp_path):
    first = await asweep(system_of(), TASK, out=tmp_path / "run")
    again = await asweep(system_of(), TASK, out=tmp_path / "run")
    assert again.values["cost"]["seconds"] >= first.values["cost"]["seconds"] > 0
    assert json.loads((tmp_path / "run" / "run.json").read_text())["seconds"] == again.values["cost"]["seconds"]


async def test_another_sweep_in_a_used_folder_is_refused_and_names_what_differs(tmp_path):
    await asweep(system_of(), TASK, out=tmp_path / "run", seed=0)
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    with pytest.raises(ConfigError, match="differing keys: seed"):
        await asweep(system_of(), TASK, out=tmp_path / "run", seed=1)
    with pytest.raises(ConfigError, match="differing keys: items"):
        await asweep(system_of(), Task("sums", ITEMS[:5]), out=tmp_path / "run", seed=0)
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


class Flaky:
    """Fails on the items it is told to, until it is mended."""

    def __init__(self, name, fails_on):
        self.name, self.fails_on = name, fails_on

    def __call__(self, request):
        if any(item.question in request.messages[0].content for item in self.fails_on):
            return CallError("the server is down")
        return "Answer: 5"


async def test_failed_runs_are_missing_and_are_retried_by_the_next_call(tmp_path):
    flaky = Flaky("a", ITEMS[:2])
    system = System("majority_vote", {"a": Scripted("a", flaky), "b": Scripted("b", "Answer: 5")})
    with pytest.raises(MissingOutcomesError, match=r"on 2 of 12 items .*the server is down.*on_missing=drop_items"):
        await asweep(system, TASK, out=tmp_path / "run")
    assert not (tmp_path / "run" / "values.json").exists()
    flaky.fails_on = ()
    asked = len(system.pool["b"].model.asked)
    result = await asweep(system, TASK, out=tmp_path / "run")
    assert result.values["n_items"] == 12
    assert len(system.pool["b"].model.asked) == asked  # only what failed was made again


async def test_items_with_failed_runs_can_be_dropped_everywhere():
    system = System("majority_vote", {"a": Scripted("a", Flaky("a", ITEMS[:2])), "b": Scripted("b", "Answer: 5")})
    result = await asweep(system, TASK, on_missing="drop_items")
    assert (result.values["n_items"], result.values["dropped_items"]) == (10, 2)
    assert set(result.table.item_ids) == {item.id for item in ITEMS[2:]}


async def test_if_every_item_failed_nothing_is_claimed():
    system = System("majority_vote", {"a": Scripted("a", CallError("down"))})
    with pytest.raises(MissingOutcomesError):
        await asweep(system, TASK, on_missing="drop_items")


async def test_fifty_identical_runs_at_once_make_one_generation():
    model = Scripted("a", "Answer: 5")
    system = System("majority_vote", {"a": model})
    await asyncio.gather(*(system.arun(ITEMS[0]) for _ in range(50)))
    assert len(model.asked) == 1


async def test_what_was_fitted_on_dev_is_kept_with_its_inputs_and_reused(tmp_path):
    task = Task("sums", ITEMS[:6], dev=ITEMS[6:])
    await asweep(system_of("prompt_router"), task, out=tmp_path / "run")
    fitted = json.loads((tmp_path / "run" / "fitted.json").read_text())
    assert set(fitted["dev_scores"]) == {"m0", "m1", "m2"}
    assert fitted["dev_items"] == 6
    (tmp_path / "run" / "fitted.json").write_text(json.dumps({**fitted, "dev_scores": {"m0": 1, "m1": 0, "m2": 0}}))
    await asweep(system_of("prompt_router"), task, out=tmp_path / "run")
    assert json.loads((tmp_path / "run" / "fitted.json").read_text())["dev_scores"]["m0"] == 1


async def test_a_run_folder_holds_every_generation_it_used(tmp_path):
    import sqlite3

    store = GenerationStore(None)
    await asweep(system_of("debate", store=store), TASK, out=tmp_path / "run")
    with sqlite3.connect(tmp_path / "run" / "outcomes.sqlite") as file:
        kept = {key for (key,) in file.execute("SELECT key FROM generation")}
        used = {call[4] for (calls,) in file.execute("SELECT calls FROM run") for call in json.loads(calls)}
        texts = {text for (text,) in file.execute("SELECT id FROM text")}
        finals = {output[0] for (final,) in file.execute("SELECT final FROM run") for output in json.loads(final)}
    assert kept == used
    assert finals == texts


# ---- from anywhere ---------------------------------------------------------------------------------------------------


def test_a_sweep_runs_from_plain_code():
    assert sweep(system_of(), TASK).values["n_items"] == 12


async def test_a_sweep_runs_where_a_loop_is_already_running():
    assert sweep(system_of(), TASK).values["n_items"] == 12  # as in a notebook cell


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "exakt"}, "did you mean 'exact'"),
        ({"method": "shapiq:KernelShap"}, "KernelSHAP"),
        ({"budget": 10}, "has a fixed number of coalitions"),
    ],
)
def test_a_sweep_that_cannot_be_meant_is_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        sweep(system_of(), TASK, **settings)
