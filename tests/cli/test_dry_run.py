"""Looking before running: `--dry-run` and `--show-prompts`."""

from __future__ import annotations

import json
import re

import pytest
from command_line import CONFIG, N_ITEMS, PROTOCOLS, SEATS, contents, kept_generations, write_config


@pytest.mark.parametrize("method", ["exact", "loo", "permutation"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_dry_run_counts_what_the_sweep_then_takes(collabsim, protocol, method):
    arguments = ("sweep", "config.yaml", "--method", method, "--set", f"protocol.name={protocol}", "--json")
    forecast = json.loads(collabsim(*arguments, "--dry-run").out)
    cost = json.loads(collabsim(*arguments).out)["cost"]
    assert forecast["coalition_runs"] == cost["runs"]
    assert forecast["own_answer_runs"] == len(SEATS) * N_ITEMS
    bounds = ("calls", "generations", "completion_tokens")
    spent = {"calls": cost["calls"], "generations": cost["generated"], "completion_tokens": cost["completion_tokens"]}
    assert all(spent[name] <= forecast[f"{name}_at_most"] for name in bounds)
    assert cost["generated"] == len(kept_generations())
    if protocol == "majority_vote":
        assert spent["calls"] == forecast["calls_at_most"]
        assert spent["generations"] == forecast["generations_at_most"] == len(SEATS) * N_ITEMS


@pytest.mark.parametrize(
    "changes",
    [
        ("helpers={base: {model: 'simulated:base'}}", "sweep.absent=replace:base"),
        ("helpers={boss: {model: 'simulated:boss'}}", "protocol={name: debate, final: judge, roles: {judge: boss}}"),
        ("protocol={name: mixture_of_agents, layers: 2}",),
        ("protocol={name: debate, rounds: 3, self_refine: true}",),
        ("protocol.name=prompt_router", "task.dev={limit: 2}", "task.limit=4"),
        ("protocol.name=cascade", "task.dev={limit: 2}", "task.limit=4"),
        ("protocol.name=trained_router", "task.dev={limit: 2}", "task.limit=4"),
        ("protocol.name=rank_and_fuse",),
        ("sweep.alone=floor",),
    ],
    ids=[
        "replaced",
        "judged by a helper",
        "two layers",
        "self-refining",
        "fitted",
        "thresholds",
        "classifiers",
        "ranked",
        "floor",
    ],
)
def test_a_dry_run_is_a_bound_whatever_the_settings(collabsim, changes):
    arguments = ("sweep", "config.yaml", "--json", *(arg for change in changes for arg in ("--set", change)))
    forecast = json.loads(collabsim(*arguments, "--dry-run").out)
    cost = json.loads(collabsim(*arguments).out)["cost"]
    assert forecast["coalition_runs"] == cost["runs"]
    assert cost["calls"] <= forecast["calls_at_most"]
    assert len(kept_generations()) <= forecast["generations_at_most"]


@pytest.mark.parametrize("flag", ["--dry-run", "--show-prompts"])
def test_looking_first_writes_nothing_and_starts_no_engine(collabsim, work, flag):
    remote = {"model": "openai:gpt-4o-mini"}  # without a key: a call would fail
    write_config(work / "config.yaml", pool={"a": remote, "b": {**remote, "base_url": "http://127.0.0.1:9/v1"}})
    before = contents(work.parent)
    ran = collabsim("sweep", "config.yaml", flag)
    assert (ran.code, ran.err) == (0, "")
    assert contents(work.parent) == before


def test_a_dry_run_prints_its_counts_for_people_too(collabsim):
    out = collabsim("sweep", "config.yaml", "--dry-run").out
    assert re.search(rf"coalition runs +{8 * N_ITEMS}\n", out)
    assert re.search(rf"generations at most +{3 * N_ITEMS}\n", out)


def test_show_prompts_prints_what_every_node_of_one_run_sends(collabsim, work):
    members = {**CONFIG["pool"], "novice": {"model": "simulated:", "system": "You are new here."}}
    write_config(work / "config.yaml", pool=members, protocol={"name": "debate"})
    out = collabsim("sweep", "config.yaml", "--show-prompts").out
    assert re.findall(r"seat (\w+) · draw (\d)", out).count(("expert", "1")) == 1
    assert len(re.findall(r"^node ", out, re.MULTILINE)) == 6
    assert out.count("You are new here.") == 2  # in both of its prompts
    assert "Others answered:" in out
    assert len(set(re.findall(r"What is \d+ plus \d+\?", out))) == 1
    assert "no model of the pool was called" in out


def test_show_prompts_fits_a_protocol_on_simulated_members_first(collabsim):
    settings = ("protocol.name=trained_router", "task.dev={limit: 2}", "task.limit=4")
    out = collabsim(
        "sweep", "config.yaml", "--show-prompts", *(arg for line in settings for arg in ("--set", line))
    ).out
    assert len(re.findall(r"^node ", out, re.MULTILINE)) == 1
