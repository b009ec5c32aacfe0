"""`protocols`, `tasks`, `report`, and the commands that other packages bring."""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import EntryPoint, EntryPoints, version

import pytest
from command_line import N_ITEMS, PROTOCOLS

import collabsim as package

OWN = ("sweep", "report", "protocols", "tasks", "score", "doctor")

# ---- protocols, tasks, report ----------------------------------------------------------------------------------------


def test_protocols_lists_all_with_a_sentence_each(collabsim):
    ran = collabsim("protocols")
    assert (ran.code, ran.err) == (0, "")
    assert all(name in ran.out for name in PROTOCOLS)


def test_protocols_as_json_has_options_players_and_roles(collabsim):
    facts = {entry["name"]: entry for entry in json.loads(collabsim("protocols", "--json").out)}
    assert set(PROTOCOLS) <= facts.keys()
    assert facts["debate"]["roles"] == ["judge"]
    options = {option["name"]: option for option in facts["debate"]["options"]}
    assert options["rounds"]["default"] == 2
    assert facts["majority_vote"]["players"] == [1, None]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_one_protocol_is_shown_with_its_options_and_its_graph(collabsim, name):
    ran = collabsim("protocols", name, "--seats", 2)
    assert ran.code == 0
    assert name in ran.out
    assert "graph TD;" in ran.out  # mermaid
    assert "| __start__ |" in ran.out  # ASCII


def test_one_protocol_as_json_has_its_graph_in_mermaid(collabsim):
    shown = json.loads(collabsim("protocols", "debate", "--json").out)
    assert shown["name"] == "debate"
    assert "graph TD;" in shown["mermaid"]


def test_a_protocol_of_one_s_own_is_shown_like_the_others(collabsim, module):
    module("own", "from collabsim.graphs.majority_vote import majority_vote\nmine = majority_vote\n")
    assert "graph TD;" in collabsim("protocols", "own:mine").out


LAZY = """
from __future__ import annotations
from typing import TYPE_CHECKING, Annotated
from pydantic import Field
from collabsim import protocol
from collabsim.graphs.majority_vote import majority_vote
if TYPE_CHECKING:
    from collections.abc import Sequence
    from langgraph.graph import StateGraph

@protocol
def lazy(seats: Sequence[str], *, rounds: Annotated[int, Field(ge=1)] = 2, names: Sequence[str] = ()) -> StateGraph:
    return majority_vote.build(seats)
"""


def test_options_are_told_in_plain_words(collabsim):
    shown = collabsim("protocols", "debate").out
    assert "rounds: whole number at least 1 (default 2)" in shown
    assert "final: vote, judge (default 'vote')" in shown
    assert "self_refine: true or false (default false)" in shown
    told = {name: collabsim("protocols", name, "--json").out for name in ("structured", "multiagent_finetuning")}
    kinds = [option["type"] for out in told.values() for option in json.loads(out)["options"]]
    assert [
        kind for kind in kinds if any(word in kind for word in ("Annotated", "Literal", "None", "[", "typing"))
    ] == []


def test_a_protocol_whose_types_are_imported_for_type_checkers_only_is_shown_and_checked(collabsim, module, work):
    """`Sequence` below TYPE_CHECKING ended in a NameError as soon as an option was given."""
    module("lazily", LAZY)
    assert "rounds: whole number at least 1" in collabsim("protocols", "lazily:lazy").out
    config = work / "lazily.yaml"
    config.write_text(
        'pool: {a: "simulated:"}\nprotocol: {name: "lazily:lazy", rounds: 0}\n'
        'task: {source: "reasoning_gym:chain_sum", limit: 2}\n'
    )
    ran = collabsim("sweep", config, "--dry-run")
    assert ran.code == 2
    assert "option 'rounds'" in ran.err


def test_tasks_lists_the_data_sets_at_hand(collabsim):
    ran = collabsim("tasks")
    assert (ran.code, ran.err) == (0, "")
    assert "reasoning_gym:chain_sum" in ran.out
    assert "jsonl:PATH" in ran.out
    assert any(row["source"] == "reasoning_gym:chain_sum" for row in json.loads(collabsim("tasks", "--json").out))


def test_one_task_is_shown_as_a_model_sees_it(collabsim):
    ran = collabsim("tasks", "jsonl:items.jsonl", "--set", "limit=2")
    assert ran.code == 0
    assert re.search(r"items +2\n", ran.out)
    assert re.search(r"What is \d plus \d+\?", ran.out)
    shown = json.loads(collabsim("tasks", "jsonl:items.jsonl", "--json").out)
    assert shown["items"] == N_ITEMS
    assert shown["example"]["messages"][-1]["role"] == "user"


def test_a_generator_is_shown_with_the_options_it_is_given(collabsim):
    ran = collabsim("tasks", "reasoning_gym:chain_sum", "--set", "options={min_terms: 2, max_terms: 2}", "--json")
    assert ran.code == 0
    assert len(re.findall(r"\d+", json.loads(ran.out)["example"]["messages"][-1]["content"])) == 2


@pytest.mark.parametrize("prefix", ["", "task."])
def test_a_task_s_keys_are_set_as_those_of_a_config(collabsim, work, prefix):
    (work / "on.jsonl").write_text('{"q": "1 + 1?", "on": "2"}\n{"q": "1 + 2?", "on": "3"}\n')
    keys = ("fields.question=q", "fields.answer=on", "prompt={question} # be brief:")
    ran = collabsim("tasks", "jsonl:on.jsonl", "--json", *(part for key in keys for part in ("--set", prefix + key)))
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["example"]["messages"][-1]["content"].endswith("? # be brief:")


def test_a_report_prints_the_table_of_the_sweep(collabsim, swept):
    assert collabsim("report", "run").out == swept.out.partition("Saved in run")[0]


def test_a_report_as_json_is_values_json(collabsim, swept, work):
    assert collabsim("report", "run", "--json").out == (work / "run" / "values.json").read_text()


def test_the_version_is_that_of_the_package(collabsim):
    ran = collabsim("--version")
    assert (ran.code, ran.out, ran.err) == (0, f"collabsim {package.__version__}\n", "")
    assert package.__version__ == version("collabsim")


@pytest.mark.parametrize("command", [(), *((name,) for name in (*OWN, "train", "compare", "finetune"))])
def test_h_is_help_for_the_group_and_for_every_command(collabsim, command):
    short, long = collabsim(*command, "-h"), collabsim(*command, "--help")
    assert (short.code, short.out, short.err) == (0, long.out, "")
    assert "Usage: collabsim" in short.out


def test_without_a_command_the_help_is_shown(collabsim):
    ran = collabsim()
    assert "Usage: collabsim" in ran.out + ran.err
    assert all(command in ran.out + ran.err for command in ("sweep", "report", "protocols", "tasks", "doctor"))


# ---- commands of other packages --------------------------------------------------------------------------------------

GREETING = """
import sys

def greet(name: str, loud: bool = False) -> None:
    "Greet somebody."
    sys.stdout.write(f"Hello {name}{'!' if loud else '.'}\\n")
"""


@pytest.fixture
def installed(monkeypatch):
    """`installed(value)`: the command `greet`, as an entry point of another package."""

    def install(value):
        points = EntryPoints([EntryPoint("greet", value, "collabsim.commands")])
        monkeypatch.setattr("collabsim.cli.app.entry_points", lambda **wanted: points.select(**wanted))

    return install


def test_a_command_of_another_package_is_listed_without_being_loaded(collabsim, module, installed):
    module("greeting", GREETING)
    installed("greeting:greet")
    out = collabsim("--help").out
    assert re.search(r"greet +\(from greeting\)", out)
    assert "greeting" not in sys.modules


def test_the_commands_of_this_package_say_what_they_do(collabsim):
    out = collabsim("--help").out
    for name, does in {"train": "Train one seat", "compare": "Train every", "finetune": "Let the pool debate"}.items():
        assert re.search(rf"{name} +{does}", out)


def test_a_command_of_another_package_runs_when_it_is_called(collabsim, module, installed):
    module("greeting", GREETING)
    installed("greeting:greet")
    assert collabsim("greet", "Ada", "--loud")[:2] == (0, "Hello Ada!\n")
    assert "Greet somebody." in collabsim("greet", "--help").out


def test_h_is_help_for_a_command_of_another_package(collabsim, module, installed):
    module("greeting", GREETING)
    installed("greeting:greet")
    ran = collabsim("greet", "-h")
    assert (ran.code, ran.out) == (0, collabsim("greet", "--help").out)
    assert "Greet somebody." in ran.out


def test_a_typer_app_of_another_package_is_a_command_too(collabsim, module, installed):
    module("greeting", GREETING + "\nimport typer\n\napp = typer.Typer()\napp.command()(greet)\n")
    installed("greeting:app")
    assert collabsim("greet", "Ada").out == "Hello Ada.\n"


def test_a_command_of_another_package_is_held_to_the_same_manners(collabsim, module, installed):
    module("greeting", GREETING)
    installed("greeting:greet")
    assert "No such option: --lout" in collabsim("greet", "Ada", "--lout").message


def test_a_command_that_cannot_be_loaded_says_what_is_missing(collabsim, installed):
    installed("no_such_package:greet")
    ran = collabsim("greet")
    assert ran.code == 2
    assert "No module named 'no_such_package'; install what it needs" in ran.message


def test_an_installed_command_cannot_take_the_name_of_ours(collabsim, monkeypatch):
    points = EntryPoints([EntryPoint("doctor", "no_such_package:greet", "collabsim.commands")])
    monkeypatch.setattr("collabsim.cli.app.entry_points", lambda **wanted: points.select(**wanted))
    assert collabsim("doctor").code == 0
