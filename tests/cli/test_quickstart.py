"""The README's quickstart, and the same file with its pool on OpenAI-compatible servers."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml
from command_line import in_a_process, kept_generations, without_time, write_config
from models.openai_server import OpenAIServer, Scripted

EXAMPLES = Path(__file__).parents[2] / "examples"


def solve(messages, body):
    """The answer to `12 + 7 - 3 =`, wherever it stands in the question."""
    terms = re.search(r"([-+ \d]*\d) =", messages[0]["content"])[1]
    return f"Answer: {sum(int(term.replace(' ', '')) for term in re.findall(r'[-+]? *[0-9]+', terms))}"


@pytest.fixture
def on_servers(work):
    """The quickstart with its pool on OpenAI-compatible servers; yields the server and the file."""
    with OpenAIServer(solve) as server:
        config = yaml.safe_load((EXAMPLES / "quickstart.yaml").read_text())
        config["pool"] = {seat: {"model": f"openai:{seat}", "base_url": server.base_url} for seat in config["pool"]}
        yield server, write_config(work / "quickstart.yaml", config)


def test_the_quickstart_works_unchanged_over_openai_compatible_servers(collabsim, on_servers):
    server, path = on_servers
    ran = collabsim("sweep", path, "--limit", 4, "--json")
    assert ran.code == 0, ran.err
    values = json.loads(ran.out)
    assert values["v"]["novice+steady+expert+echo"] == 1.0  # the server can add
    assert values["cost"]["generated"] == len(server.requests)
    assert {received.body["model"] for received in server.requests} == {"novice", "steady", "expert", "echo"}


def test_a_vote_over_servers_makes_one_request_per_member_and_item_and_none_again(collabsim, on_servers):
    server, path = on_servers
    vote = ("sweep", path, "--limit", 5, "--set", "protocol={name: majority_vote}", "--json")
    first = json.loads(collabsim(*vote, "--out", "first").out)
    assert len(server.requests) == first["cost"]["generated"] == 4 * 5
    second = json.loads(collabsim(*vote, "--out", "second").out)
    again = json.loads(collabsim(*vote, "--out", "first").out)
    assert len(server.requests) == 4 * 5
    assert first["shapley"] == second["shapley"] == again["shapley"]


def test_a_finished_sweep_needs_no_server_any_more(collabsim, on_servers):
    server, path = on_servers
    vote = ("sweep", path, "--limit", 2, "--set", "protocol={name: majority_vote}", "--out", "run", "--json")
    first = json.loads(collabsim(*vote).out)
    server.__exit__()
    again = collabsim(*vote)
    assert again.code == 0
    assert without_time(json.loads(again.out)) == without_time(first)


def test_a_request_that_fails_leaves_a_gap_that_the_same_command_fills(collabsim, on_servers, work):
    server, path = on_servers
    vote = ("sweep", path, "--limit", 3, "--set", "protocol={name: majority_vote}", "--out", "run")
    server.script.append(Scripted(400))
    first = collabsim(*vote)
    assert first.code == 2
    failed, message = first.err.splitlines()
    assert re.fullmatch(r"\d+ runs failed; the same command tries them again", failed)
    assert re.search(r"^collabsim: \d+ runs on 1 of 3 items have no outcome .*: run the same command again", message)
    assert not (work / "run" / "values.json").exists()
    n_asked, n_kept = len(server.requests), len(kept_generations())
    assert collabsim(*vote).code == 0
    assert len(server.requests) - n_asked == 4 * 3 - n_kept


def test_the_quickstart_is_found_and_planned_by_the_installed_script(work):
    shutil.copy(EXAMPLES / "quickstart.yaml", work)
    ran = in_a_process("sweep", "quickstart.yaml", "--dry-run", "--json", cwd=work)
    assert json.loads(ran.out)["coalition_runs"] == 2**4 * 60
