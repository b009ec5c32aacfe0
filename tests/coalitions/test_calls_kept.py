"""What each run took, read back from a run folder."""

from __future__ import annotations

import pytest

from collabsim import Pool, SimulatedModel, System, Task, sweep
from collabsim.coalitions.calls_kept import read_calls
from collabsim.errors import ConfigError, StoreError
from collabsim.run_folder import OUTCOMES_FILE
from collabsim.testing import sample_items


def kept(out):
    pool = Pool({name: SimulatedModel(name=name) for name in "abc"})
    task = Task(name="sums", items=tuple(sample_items(2)), kind="number")
    values = sweep(System("debate", pool), task, method="exact", out=out).values
    return list(read_calls(out / OUTCOMES_FILE)), values["cost"]


def test_every_run_has_its_calls_whether_or_not_they_were_generated_for_it(tmp_path):
    runs, cost = kept(tmp_path / "run")
    assert len(runs) == 2 * (8 + 3)
    assert sum(run.calls for run in runs) == cost["calls"]
    # Two rounds of all who are there; alone they just answer.
    assert {(run.kind, run.who): run.calls for run in runs if run.who in ("", "a", "a+b", "a+b+c")} == {
        ("coalition", ""): 0,
        ("coalition", "a"): 1,
        ("alone", "a"): 1,
        ("coalition", "a+b"): 4,
        ("coalition", "a+b+c"): 6,
    }


def test_the_tokens_of_a_run_are_those_of_all_its_calls(tmp_path):
    runs, cost = kept(tmp_path / "run")
    alone = {(run.item, run.who): run for run in runs if run.kind == "alone"}
    for run in runs:
        if run.kind == "coalition" and run.calls == 1:
            assert run.tokens == alone[run.item, run.who].tokens > 0
    assert sum(run.prompt_tokens for run in runs) > cost["prompt_tokens"]  # openings count in each coalition


def test_a_folder_without_outcomes_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="holds no outcomes"):
        list(read_calls(tmp_path / OUTCOMES_FILE))


def test_a_broken_file_is_named(tmp_path):
    (tmp_path / OUTCOMES_FILE).write_text("not a database, and long enough to be told from an empty one" * 20)
    with pytest.raises(StoreError, match="cannot be read"):
        list(read_calls(tmp_path / OUTCOMES_FILE))
