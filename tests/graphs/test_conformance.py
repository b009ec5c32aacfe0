"""Every protocol of this project goes through the conformance suite over the range of its options."""

import pytest

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
ROLES = {"mixture_of_agents": "aggregator", "prompt_router": "router", "debate": "judge"}


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize(("name", "options"), CASES)
def test_protocol_holds_to_every_rule(name, options, size):
    check_protocol(name, options=options, size=size)


@pytest.mark.parametrize(("name", "role"), ROLES.items())
def test_protocol_holds_to_every_rule_with_a_fixed_helper_in_its_role(name, role):
    helpers = Pool({"fixed": sample_pool(["x"], sample_items())["x"]})
    options = {"final": "judge"} if name == "debate" else {}
    check_protocol(name, options=options, roles={role: "fixed"}, helpers=helpers)


@pytest.mark.parametrize(("name", "role"), ROLES.items())
def test_protocol_holds_to_every_rule_with_a_seat_in_its_role(name, role):
    options = {"final": "judge"} if name == "debate" else {}
    check_protocol(name, options=options, roles={role: ["b", "a"]})
