"""Sweeps of applications: paired or not, from Python and from a config, stopped and resumed."""

from __future__ import annotations

import json
import os
import signal
from io import StringIO
from pathlib import Path

import pytest
import yaml
from cli.command_line import in_a_process
from foreign import plain_app
from foreign.applications import ABSENT, READ, chain, map_reduce, pool
from rich.console import Console

from collabsim import Task, from_graph, make_item, sweep
from collabsim.cli.sweep_command import prepare
from collabsim.coalitions.forecast import forecast
from collabsim.coalitions.sweep import plan_sweep
from collabsim.config.read import parse_config
from collabsim.errors import ConfigError, ProtocolError
from collabsim.foreign.calls import require_paired
from collabsim.report.terminal import show_values
from collabsim.testing import check_system, sample_items

FOLDER = Path(__file__).parent
ITEMS = [make_item(f"What is {k} + {k + 1} ?", str(2 * k + 1)) for k in range(4)]
TASK = Task("sums", tuple(ITEMS))


def shown(values):
    console = Console(file=StringIO(), width=200)
    show_values(values, console)
    return console.file.getvalue()


def test_calls_past_the_seats_are_recorded_and_the_sweep_is_marked_not_paired(tmp_path):
    result = sweep(from_graph(plain_app.app), TASK, method="exact", out=tmp_path / "run")
    assert result.values["v"] == {"": 0.0, "guess": 0.0, "check": 1.0, "guess+check": 1.0}
    assert result.values["paired"] is False
    cost = result.values["cost"]
    assert (cost["calls"], cost["generated"], cost["reused"]) == (16, 16, 0)
    assert (cost["prompt_tokens"], cost["completion_tokens"]) == (16 * 7, 16 * 3)
    assert "not paired" in shown(result.values)
    assert json.loads((tmp_path / "run" / "values.json").read_text())["paired"] is False


def test_a_resumed_sweep_remembers_that_it_is_not_paired(tmp_path):
    first = sweep(from_graph(plain_app.app), TASK, method="exact", out=tmp_path / "run").values
    again = sweep(from_graph(plain_app.make()), TASK, method="exact", out=tmp_path / "run2").values
    resumed = sweep(from_graph(plain_app.app), TASK, method="exact", out=tmp_path / "run").values
    assert resumed["paired"] is again["paired"] is False
    assert {**resumed["cost"], "seconds": 0} == {**first["cost"], "seconds": 0}


def test_a_sweep_on_seats_is_paired_and_says_nothing_about_it():
    values = sweep(from_graph(chain("a"), pool("a")), TASK, method="exact").values
    assert values["paired"] is True
    assert "paired" not in shown(values)


def test_training_is_told_which_node_needs_a_seat():
    with pytest.raises(
        ProtocolError, match=r"node 'guess' called the model '\w+' itself.*model = SeatModel\('guess'\)"
    ):
        require_paired(from_graph(plain_app.app).run(ITEMS[0]))
    require_paired(from_graph(chain("a"), pool("a")).run(ITEMS[0]))


def test_a_call_names_its_node_whether_the_node_is_synchronous_or_not():
    calls = from_graph(plain_app.app).run(ITEMS[0]).calls
    assert [call.node for call in calls] == ["guess", "check"]


def test_players_that_are_models_are_refused_for_an_application():
    with pytest.raises(ConfigError, match="names its players itself"):
        sweep(from_graph(plain_app.app), TASK, players="models")


def test_only_the_seats_of_players_are_asked_for_answers_of_their_own():
    system = from_graph(map_reduce(), pool("a", "b"), players=["research", "b"], absent=ABSENT, **READ)
    assert plan_sweep(system, TASK).runs.seats == ("b",)


def test_a_forecast_does_not_claim_to_know_the_calls_of_an_application():
    counts = forecast(plan_sweep(from_graph(plain_app.app), TASK, method="exact"))
    assert (counts["coalition_runs"], counts["calls_at_most"]) == (16, None)


def test_identity_follows_from_players_rules_and_revision():
    def identity(**settings):
        return from_graph(map_reduce(), pool("a", "b"), **{"absent": ABSENT, **READ, **settings}).identity

    assert identity() == identity()
    others = [{"players": ["write"]}, {"absent": {}}, {"revision": "2"}, {"recursion_limit": 7}, {"output": str}]
    assert len({identity(), *(identity(**other) for other in others)}) == 6


def test_the_conformance_suite_for_systems_finds_a_coalition_that_fails():
    def breaks(state):
        if len(state["messages"]) == 1:
            raise ValueError("nobody spoke before")

    graph = chain("a")
    graph.add_node("breaks", breaks)
    graph.add_edge("ask-a", "breaks")
    with pytest.raises(AssertionError, match=r"coalition \['breaks'\].*nobody spoke before"):
        check_system(from_graph(graph, pool("a")), sample_items(1))


def test_the_conformance_suite_for_systems_finds_state_that_is_kept_between_runs():
    said = []

    def remembers(state):
        said.append(len(said))
        return {"messages": [("ai", f"Answer: {4 * len(said) - 1}")]}

    graph = chain("a")
    graph.add_node("remembers", remembers)
    graph.add_edge("ask-a", "remembers")
    items = [make_item("What is 3 times 5?", "15")]
    with pytest.raises(AssertionError, match=r"by itself, .* among other runs"):
        check_system(from_graph(graph, pool("a")), items)


# ---- from a config ---------------------------------------------------------------------------------------------------

ANSWERS = {"a": {"skill": 0.5}, "b": {"skill": 0.0, "conformity": 0.8}}
GRAPH = {
    "graph": str(FOLDER / "seats_app.py") + ":app",
    "players": ["plan", "research", "write"],
    "input": "foreign.applications:question_of",
    "output": "foreign.applications:report_of",
    "absent": {"plan": {"angles": ["Add it up."]}, "write": "foreign.applications:first_note"},
}


def config(folder: Path, *, members=None, **protocol) -> Path:
    rows = [{"question": f"What is {k} + {k + 3}?", "answer": str(2 * k + 3)} for k in range(6)]
    (folder / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    members = members or {name: {"model": "simulated:", "options": options} for name, options in ANSWERS.items()}
    data = {"pool": members, "protocol": {**GRAPH, **protocol}, "task": {"source": "jsonl:items.jsonl"}}
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump({**data, "sweep": {"method": "exact"}, "concurrency": 2}, sort_keys=False))
    return path


def test_a_config_names_an_application_and_gives_what_python_gives(tmp_path):
    prepared = prepare(config(tmp_path), [])
    values = sweep(prepared.system, prepared.task, method="exact").values
    models = {name: seat.model for name, seat in prepared.system.pool.items()}
    how = {"players": GRAPH["players"], "absent": ABSENT, **READ}
    same = sweep(from_graph(map_reduce(), models, **how), prepared.task, method="exact").values
    assert values["v"] == same["v"]
    assert values["definitions"]["protocol"] == "seats_app.py:app"


def test_an_application_without_seats_needs_no_pool(tmp_path):
    path = config(tmp_path)
    data = yaml.safe_load(path.read_text())
    del data["pool"]
    data["protocol"] = {
        "graph": str(FOLDER / "plain_app.py") + ":make",
        "output": str(FOLDER / "plain_app.py") + ":last",
    }
    path.write_text(yaml.safe_dump(data))
    prepared = prepare(path, [])
    assert prepared.system.players == ("guess", "check")
    assert sweep(prepared.system, prepared.task, method="loo").values["paired"] is False


@pytest.mark.parametrize(
    ("protocol", "message"),
    [
        ({"playerz": []}, r"unknown key 'protocol.playerz' \(did you mean 'players'\?\)"),
        ({"graph": "nowhere.py:app"}, "protocol.graph: 'nowhere.py' cannot be imported: there is no file"),
        ({"graph": "no_such_module_x:app"}, "'no_such_module_x' cannot be imported"),
        ({"graph": GRAPH["graph"] + "p"}, r"has no 'appp' \(did you mean 'app'\?\)"),
        ({"graph": "seats_app"}, "expected 'package.module:name' or 'file.py:name'"),
        ({"players": ["plann"]}, "did you mean 'plan'"),
        ({"roles": {"judge": "a"}}, "an application has no roles"),
        ({"absent": {"plan": 3}}, "protocol.absent.plan: expected a word, an update or a function's name, got 3"),
        ({"recursion_limit": 0}, "protocol.recursion_limit: Input should be greater than 0"),
    ],
)
def test_a_config_that_cannot_be_meant_is_refused_with_its_key(tmp_path, protocol, message):
    with pytest.raises(ConfigError, match=message):
        prepare(config(tmp_path, **protocol), [])


def test_a_protocol_still_needs_a_name_and_a_pool():
    with pytest.raises(ConfigError, match=r"the key 'protocol\.name' is missing"):
        parse_config({"pool": {"a": {"model": "simulated:"}}, "protocol": {}, "task": {"source": "jsonl:x"}})
    with pytest.raises(ConfigError, match="pool: Dictionary should have at least 1 item"):
        parse_config({"pool": {}, "protocol": {"name": "debate"}, "task": {"source": "jsonl:x"}})


def test_a_file_that_moves_with_its_config_is_the_same_application(tmp_path):
    identities = set()
    for place in ("here", "there"):
        folder = tmp_path / place
        folder.mkdir()
        (folder / "app.py").write_text((FOLDER / "plain_app.py").read_text())
        path = config(folder, graph="app.py:app", output="app.py:last", players=["guess"], absent={}, input=None)
        identities.add(prepare(path, []).system.identity)
    assert len(identities) == 1


@pytest.mark.slow
def test_a_killed_sweep_of_an_application_goes_on_with_nothing_generated_again(tmp_path):
    members = {
        name: {"model": "python:witness:member", "options": {**options, "name": name, "latency": 0.01}}
        for name, options in ANSWERS.items()
    }
    notebook = tmp_path / "asked.txt"
    config(tmp_path, members=members)
    paths = os.pathsep.join([str(FOLDER.parent), str(FOLDER.parent / "cli")])
    env = {**os.environ, "PYTHONPATH": paths, "WITNESS": str(notebook)}
    command = ("sweep", "config.yaml", "--out", "run", "--store", "g.sqlite", "--json")
    killed = in_a_process(*command, cwd=tmp_path, env={**env, "KILL_AFTER": "12:0"})
    assert killed.code == -signal.SIGKILL, killed.err
    done = in_a_process(*command, cwd=tmp_path, env=env)
    assert done.code == 0, done.err
    begun = notebook.read_text().split()
    # What was in flight when the process died is made again, two runs with three workers each at most.
    assert len(begun) - len(set(begun)) <= 6
    values = json.loads(done.out)
    assert values["cost"]["generated"] >= len(set(begun)) - 6
    again = in_a_process(*command, cwd=tmp_path, env=env)
    assert json.loads(again.out)["v"] == values["v"]
    assert len(notebook.read_text().split()) == len(begun)
