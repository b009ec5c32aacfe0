"""What the reference pages list is what there is: public names, commands, flags, protocols, data sets, keys of files."""

from __future__ import annotations

import json
import re

import pytest
from pages import ROOT, read
from typer.main import get_command

import collabsim
import collabsim.testing
from collabsim import Pool, SimulatedModel, System, load_task, sweep
from collabsim.cli.app import app
from collabsim.protocols import as_protocol, registered

DOCS = ROOT / "docs"


def section(page: str, heading: str) -> str:
    """A section of a page, up to the next heading of its level."""
    text = read(DOCS / page)
    assert f"## {heading}\n" in text
    return text.partition(f"## {heading}\n")[2].partition("\n## ")[0]


def first_cells(text: str) -> set[str]:
    """All code in the first cells of a section's tables."""
    rows = re.findall(r"^\|(.+?)\|", text, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def test_the_python_reference_has_every_public_name():
    import collabsim.trainers

    page = read(DOCS / "api.md")
    names = [f"collabsim.{name}" for name in collabsim.__all__ if not name.startswith("__")]
    names += [f"trainers.{name}" for name in collabsim.trainers.__all__]
    names += [f"collabsim.testing.{name}" for name in ("check_protocol", "check_system", "sample_items")]
    assert [name for name in names if f"::: {name}\n" not in page] == []


def test_every_command_and_flag_is_listed():
    page = read(DOCS / "command-line.md")
    group = get_command(app)
    context = group.make_context("collabsim", ["doctor"])
    commands = {name: group.get_command(context, name) for name in group.list_commands(context)}
    listed = {cell.split()[0] for cell in first_cells(page) if cell[0].isalpha()}
    assert set(commands) <= listed
    flags = {
        flag
        for name, command in commands.items()
        for parameter in command.make_context(
            name, _needed(name), parent=context, resilient_parsing=True
        ).command.params
        for flag in parameter.opts
        if flag.startswith("--")
    } - {"--help", "--kind"}
    assert len(flags) > 8
    assert [flag for flag in flags if f"`{flag}" not in section("command-line.md", "Flags")] == []


def _needed(name: str) -> list[str]:
    return {"score": ["--kind", "number"]}.get(name, ["file"] if name in ("sweep", "report", "train") else [])


def test_every_protocol_is_in_the_table_of_its_family():
    rows = dict(re.findall(r"^\| (\w+) \| (.+) \|$", section("protocols.md", "Ready-made protocols"), re.MULTILINE))
    for name, point in registered().items():
        if point.value.startswith("collabsim."):
            assert f"`{name}`" in rows[as_protocol(name).family], name


def test_every_argument_of_the_decorator_is_explained():
    import inspect

    arguments = set(inspect.signature(collabsim.protocol).parameters) - {"build"}
    assert first_cells(section("protocols.md", "What the decorator takes")) == arguments


def test_every_argument_of_from_graph_is_explained():
    import inspect

    arguments = set(inspect.signature(collabsim.from_graph).parameters)
    assert first_cells(section("applications.md", "What to give")) == arguments


def test_every_known_data_set_is_listed():
    from collabsim.tasks.data_sets import DATA_SETS

    assert set(DATA_SETS) <= first_cells(section("tasks.md", "Sources"))


def test_the_columns_of_items_are_those_that_are_read():
    from collabsim.tasks.record import ROLES

    table = section("tasks.md", "Your own questions")
    for role, columns in ROLES.items():
        (row,) = re.findall(rf"^\| `{role}` \| (.+?) \|", table, re.MULTILINE)
        assert re.findall(r"`([^`]+)`", row) == list(columns)


def test_every_kind_of_answer_is_explained():
    from collabsim.tasks import scorer_for

    kinds = first_cells(section("tasks.md", "Kinds of answers"))
    assert kinds == {"number", "expression", "exact", "choice", "text", "code", "verifier"}
    assert {scorer_for(kind).kind for kind in kinds - {"verifier"}} == kinds - {"verifier"}


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    task = load_task("reasoning_gym:chain_sum", limit=3, seed=1, dev={"limit": 2})
    out = tmp_path_factory.mktemp("reference") / "run"
    return sweep(System("majority_vote", Pool(a=SimulatedModel(), b=SimulatedModel(skill=1.0))), task, out=out)


def test_every_key_of_the_values_is_explained(result):
    told = first_cells(section("files.md", "values.json"))
    assert set(result.values) == told
    estimate = re.search(r"An estimate is `\{(.+?)\}`", section("files.md", "values.json"))[1]
    assert set(re.findall(r'"(\w+)"', estimate)) == set(result.values["shapley"]["a"])
    (cost,) = re.findall(r"^\| `cost` \| (.+) \|$", section("files.md", "values.json"), re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", cost)) == set(result.values["cost"])


def test_every_file_of_a_run_folder_is_explained(result):
    written = {path.name for path in result.out.iterdir() if not path.name.endswith(("-wal", "-shm"))}
    assert written == {name for name in first_cells(section("files.md", "Run folder")) if "." in name}


def test_the_fields_of_score_are_those_that_are_read_and_written(tmp_path):
    from collabsim.cli.score_command import FIELDS, scores
    from collabsim.tasks import scorer_for

    into, out = re.split(r"\n\| field out", section("files.md", "collabsim score"))
    kinds = ("number", "expression", "exact", "choice", "text", "code")
    assert first_cells(into) == {*FIELDS, *(field for kind in kinds for field in scorer_for(kind).fields)}
    (score,) = scores("number", [json.dumps({"response": "5", "gold": "5"}).encode()])
    assert {"score", "verdict", "extracted", "reason"} == first_cells(out)
    assert score.verdict == "right"
