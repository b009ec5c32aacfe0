"""Every protocol of this project goes through the conformance suite over the range of its options."""

import pytest

from collabsim.errors import ProtocolError
from collabsim.pool import Pool
from collabsim.testing import check_protocol, sample_items, sample_pool

CASES = [
    ("majority_vote", {}),
    ("debate", {"rounds": 1}),
    ("debate", {"rounds": 2}),
    ("debate", {"rounds": 3, "self_refine": True}),
    ("debate", {"rounds": 2, "final": "judge"}),
    ("debate", {"rounds": 2, "quote_limit": 40}),
    ("mixture_of_agents", {"layers": 1}),
    ("mixture_of_agents", {"layers": 2}),
    ("prompt_router", {}),
]
ENSEMBLES = [
    ("logit_fusion", {}),
    ("logit_fusion", {"how": "product"}),
    ("logit_fusion", {"weights": {"c": 3.0}}),
    ("contrastive", {}),
    ("contrastive", {"k": 2, "strength": 0.5}),
    ("nudging", {"threshold": 0.9}),
]
MERGES = [
    ("soup", {}),
    ("greedy_soup", {}),
    ("task_arithmetic", {"scale": 0.3}),
    ("ties", {"density": 0.5}),
    ("dare_ties", {"density": 0.3, "seed": 4}),
]
AGGREGATORS = [{}, {"samples": 2}, {"aggregator": "c"}, {"aggregator": "c", "samples": 2}]
MORE_CASES = [
    ("self_consistent_mux", {"samples": 3}),
    ("blackboard", {}),
    ("blackboard", {"rounds": 4, "quorum": 3, "most_posts": 2}),
    ("feedback", {}),
    ("feedback", {"critics": 1, "rounds": 2, "final": "judge"}),
    ("knowledge_cards", {}),
    ("knowledge_cards", {"own_card": True}),
    ("rank_and_fuse", {}),
    ("rank_and_fuse", {"ranking": "listwise", "top_k": 1}),
    ("structured", {"structure": "chain"}),
    ("structured", {"structure": "tree", "rounds": 1}),
    ("structured", {"structure": "star", "rounds": 3}),
    ("structured", {"structure": "ring", "rounds": 3}),
    ("structured", {"structure": "complete", "rounds": 2}),
    ("cascade", {}),
    ("cascade", {"threshold": 0.0}),
    ("cascade", {"threshold": 1.0}),
    ("trained_router", {}),
    ("graph_router", {}),
    ("graph_router", {"neighbours": 1, "restart": 0.05}),
    ("switch_generation", {}),
    ("switch_generation", {"segment": 4, "turns": 2}),
]
ROLES = {
    "debate": "judge",
    "feedback": "judge",
    "knowledge_cards": "answerer",
    "mixture_of_agents": "aggregator",
    "prompt_router": "router",
    "rank_and_fuse": "ranker",
    "trained_aggregator": "aggregator",
}
WITH_JUDGE = {"debate", "feedback"}


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize(("name", "options"), CASES)
def test_protocol_holds_to_every_rule(name, options, size):
    check_protocol(name, options=options, size=size)


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize(("name", "options"), MORE_CASES)
def test_a_costlier_protocol_holds_to_every_rule(name, options, size):
    check_protocol(name, options=options, size=size)


def test_a_structure_of_names_and_one_of_numbers_hold_to_every_rule():
    check_protocol("structured", options={"structure": [[0, 1, 0], [0, 0, 1], [1, 1, 0]], "rounds": 3})
    check_protocol("structured", options={"structure": {"a": ["c"], "b": ["c"], "c": []}})


@pytest.mark.parametrize(("name", "role"), ROLES.items())
def test_protocol_holds_to_every_rule_with_a_fixed_helper_in_its_role(name, role):
    helpers = Pool({"fixed": sample_pool(["x"], sample_items())["x"]})
    options = {"final": "judge"} if name in WITH_JUDGE else {}
    check_protocol(name, options=options, roles={role: "fixed"}, helpers=helpers)


@pytest.mark.parametrize(("name", "role"), ROLES.items())
def test_protocol_holds_to_every_rule_with_a_seat_in_its_role(name, role):
    options = {"final": "judge"} if name in WITH_JUDGE else {}
    check_protocol(name, options=options, roles={role: ["b", "a"]})


@pytest.mark.parametrize(("name", "options"), ENSEMBLES)
def test_ensemble_holds_to_every_rule(name, options):
    check_protocol(name, options=options, size=2 if name == "nudging" else 4 if "k" in options else 3)


@pytest.mark.parametrize(("name", "options"), MERGES)
def test_merge_holds_to_every_rule(name, options):
    base = Pool({"base": sample_pool(["x"], sample_items())["x"]})
    check_protocol(name, options=options, helpers=base, size=4)


@pytest.mark.parametrize("options", AGGREGATORS)
def test_trained_aggregator_holds_to_every_rule(options):
    check_protocol("trained_aggregator", options=options, size=3)


def test_nudging_refuses_pools_of_any_other_size():
    for size in (1, 3):
        with pytest.raises(ProtocolError, match="exactly 2 seats"):
            check_protocol("nudging", size=size)
