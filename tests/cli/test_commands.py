"""`collabsim sweep`: what it writes and prints, what it does when it is called again, and which setting wins."""

from __future__ import annotations

import json
import re

import pytest
from command_line import CONFIG, N_ITEMS, SEATS, contents, kept_generations, rows, without_time, write_config

from collabsim.models.simulation.simulated import SimulatedModel
from collabsim.system.system import System


@pytest.fixture
def no_runs(monkeypatch):
    """From here on no model answers and no system runs."""

    async def refuse(*_, **__):
        raise AssertionError("nothing may run")

    monkeypatch.setattr(SimulatedModel, "areply", refuse)
    monkeypatch.setattr(System, "arun", refuse)
    monkeypatch.setattr(System, "alone_on", refuse)


# ---- sweep: what it writes -------------------------------------------------------------------------------------------


def test_a_sweep_leaves_a_run_folder_with_config_outcomes_and_values(swept, work):
    assert sorted(contents(work / "run")) == ["outcomes.sqlite", "run.json", "values.json"]
    record = json.loads((work / "run" / "run.json").read_text())
    assert record["identity"]["pool"]["novice"]["sampling"]["max_tokens"] == 512  # the defaults are written out
    assert record["failed_runs"] == 0
    assert {"started", "updated", "command", "python", "versions"} <= record.keys()
    n_runs = (2 ** len(SEATS) + len(SEATS)) * N_ITEMS
    assert rows(work / "run" / "outcomes.sqlite", "SELECT count(*), count(outcome) FROM run") == [(n_runs, n_runs)]


def test_json_on_standard_output_is_values_json_and_nothing_else(collabsim, work):
    ran = collabsim("sweep", "config.yaml", "--out", "run", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (work / "run" / "values.json").read_text()


def test_the_table_names_every_member_and_where_the_run_lies(swept):
    assert all(seat in swept.out for seat in SEATS)
    assert "Saved in run" in swept.out


def test_values_json_has_the_contract_s_schema(swept, work):
    values = json.loads((work / "run" / "values.json").read_text())
    assert values["players"] == list(SEATS)
    assert (values["n_items"], values["method"]) == (N_ITEMS, "exact")
    assert set(values["v"]) == {
        "", "novice", "steady", "expert", "novice+steady", "novice+expert", "steady+expert", "novice+steady+expert"
    }  # fmt: skip
    for strength in ("shapley", "leave_one_out", "individual"):
        assert list(values[strength]) == list(SEATS)
        for estimate in values[strength].values():
            low, high = estimate["ci95"]
            assert low <= estimate["value"] <= high
            assert estimate["se"] >= 0
    assert abs(values["efficiency_gap"]) < 1e-9
    assert values["relation"]["verdict"] in ("aligned", "misaligned", "undecided")
    assert sum(values["relation"]["pairs"].values()) == 3
    assert values["relation"]["pairs"].keys() == {"concordant", "inverted", "undecided"}
    assert "spearman" in values["relation"]
    counts = ("runs", "calls", "generated", "reused", "prompt_tokens", "completion_tokens")
    assert set(values["cost"]) == {*counts, "seconds"}
    assert all(isinstance(values["cost"][name], int) for name in counts)


def test_shapley_values_add_up_to_what_the_whole_pool_gains(swept, work):
    values = json.loads((work / "run" / "values.json").read_text())
    total = sum(estimate["value"] for estimate in values["shapley"].values())
    assert total == pytest.approx(values["v"]["novice+steady+expert"] - values["v"][""])


# ---- sweep: again ----------------------------------------------------------------------------------------------------


def test_the_same_command_again_runs_nothing_and_prints_the_same(collabsim, swept, no_runs, work):
    before = json.loads((work / "run" / "values.json").read_text())
    again = collabsim("sweep", "config.yaml", "--out", "run", "--json")
    assert again.code == 0
    assert without_time(json.loads(again.out)) == without_time(before)
    total = (2 ** len(SEATS) + len(SEATS)) * N_ITEMS
    assert again.err == f"resuming: {total} of {total} runs are there already\n"


def test_another_run_folder_over_the_same_store_generates_nothing(collabsim, swept, work, monkeypatch):
    monkeypatch.setattr(SimulatedModel, "areply", None)
    values = json.loads(collabsim("sweep", "config.yaml", "--out", "other", "--json").out)
    assert values["cost"]["generated"] == 0
    assert values["shapley"] == json.loads((work / "run" / "values.json").read_text())["shapley"]


@pytest.mark.parametrize("placement", ["concurrency=3", "store=elsewhere.sqlite", "train={seat: novice}"])
def test_where_and_how_a_sweep_runs_may_change_between_sessions(collabsim, swept, no_runs, placement):
    assert collabsim("sweep", "config.yaml", "--out", "run", "--set", placement).code == 0


def test_a_changed_default_that_is_written_out_is_the_same_config(collabsim, swept, no_runs):
    assert collabsim("sweep", "config.yaml", "--out", "run", "--set", "sweep.seed=0").code == 0


def test_outcomes_do_not_depend_on_how_many_runs_are_in_flight(collabsim, swept, work):
    one = collabsim("sweep", "config.yaml", "--out", "one", "--store", "one.sqlite", "--set", "concurrency=1", "--json")
    many = json.loads((work / "run" / "values.json").read_text())
    assert without_time(json.loads(one.out)) == without_time(many)


# ---- sweep: names and precedence -------------------------------------------------------------------------------------


def run_folders(work):
    return sorted(path.name for path in (work / "runs").iterdir())


def test_the_default_run_folder_is_named_after_the_config_and_its_content(collabsim, work):
    collabsim("sweep", "config.yaml")
    collabsim("sweep", "config.yaml", "--set", "concurrency=3")
    (first,) = run_folders(work)
    assert re.fullmatch(r"config-[0-9a-f]{8}", first)
    collabsim("sweep", "config.yaml", "--limit", "2")
    assert len(run_folders(work)) == 2


def test_the_default_run_folder_lies_below_the_current_folder_and_not_beside_the_config(collabsim, work, monkeypatch):
    (work / "elsewhere").mkdir()
    monkeypatch.chdir(work / "elsewhere")
    assert collabsim("sweep", "../config.yaml").code == 0
    assert run_folders(work / "elsewhere")
    assert not (work / "runs").exists()


def test_a_flag_beats_set_which_beats_the_file(collabsim, work):
    write_config(work / "config.yaml", task={**CONFIG["task"], "limit": 4})

    def n_items(*flags):
        return json.loads(collabsim("sweep", "config.yaml", "--dry-run", "--json", *flags).out)["items"]

    assert n_items() == 4
    assert n_items("--set", "task.limit=3") == 3
    assert n_items("--limit", 2, "--set", "task.limit=3") == 2
    assert n_items("--set", "task.limit=3", "--set", "task.limit=1") == 1


@pytest.mark.parametrize("name", ["2024", "yes", "1e3", "a: b", "[x]", "null", "größe 😀", "it's"])
def test_a_flag_is_taken_by_the_letter(collabsim, work, name):
    assert collabsim("sweep", "config.yaml", "--out", name, "--store", f"{name}.sqlite").code == 0
    assert (work / name / "values.json").exists()
    assert (work / f"{name}.sqlite").exists()


def test_a_run_folder_and_a_store_can_be_named_in_the_file(collabsim, work):
    write_config(work / "config.yaml", out="kept/run", store="kept.sqlite")
    assert collabsim("sweep", "config.yaml").code == 0
    assert (work / "kept" / "run" / "values.json").exists()
    assert kept_generations("kept.sqlite")
    assert not kept_generations()


def test_a_tilde_is_the_home_folder_of_the_user(collabsim, work, monkeypatch):
    monkeypatch.setenv("HOME", str(work / "home"))
    (work / "home").mkdir()
    assert collabsim("sweep", "config.yaml", "--out", "~/run", "--store", "~/g.sqlite").code == 0
    assert {"run", "g.sqlite"} <= contents(work / "home").keys()
    assert not (work / "~").exists()
