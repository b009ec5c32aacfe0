"""In which order a sweep makes its runs."""

from itertools import pairwise

import pytest

from collabsim import Pool, System, make_item
from collabsim.coalitions.sweep import plan_sweep
from collabsim.models.simulation.simulated import SimulatedModel
from collabsim.tasks import Task

ITEMS = tuple(make_item(f"What is {k} + 1?", str(k + 1)) for k in range(4))


def planned(protocol, method):
    models = {name: SimulatedModel(name=name) for name in ("a", "b", "c", "base")}
    helpers = Pool({"base": models.pop("base")})
    return plan_sweep(System(protocol, models, helpers=helpers), Task("sums", ITEMS), method=method)


def changes(masks):
    return sum(one != other for one, other in pairwise(masks))


@pytest.mark.parametrize("method", ["exact", "permutation", "loo"])
def test_a_protocol_with_something_large_per_coalition_goes_coalition_by_coalition(method):
    runs = [run.mask for run in planned("soup", method).runs if run.kind == "coalition"]
    assert changes(runs) == len(set(runs)) - 1
    alone = [run.mask for run in planned("soup", method).runs if run.kind == "alone"]
    assert changes(alone) == 2


@pytest.mark.parametrize("method", ["exact", "permutation", "loo"])
def test_both_orders_make_the_same_runs(method):
    grouped, by_item = (list(planned(name, method).runs) for name in ("soup", "majority_vote"))
    assert sorted(grouped) == sorted(by_item)
    assert len(set(grouped)) == len(grouped)


def test_other_protocols_go_item_by_item():
    runs = [run.item for run in planned("majority_vote", "exact").runs]
    assert changes(runs) == len(ITEMS) - 1
