"""Why answers scored as they did: kept in the run folder, shown by `collabsim report DIR --answers VERDICT`."""

import json
import sqlite3

import pytest

from collabsim import Pool, SimulatedModel, System, Task, make_item, sweep
from collabsim.cli import report_command as report
from collabsim.coalitions.answers_kept import read_answers
from collabsim.errors import ConfigError, StoreError
from collabsim.run_folder import OUTCOMES_FILE

QUESTIONS = 6


@pytest.fixture
def folder(tmp_path):
    """A finished run of two members on a few sums."""
    items = tuple(make_item(f"What is {k} + {k}?", str(2 * k)) for k in range(QUESTIONS))
    pool = Pool(low=SimulatedModel(skill=-2.0), high=SimulatedModel(skill=2.0))
    sweep(System("majority_vote", pool), Task("sums", items), method="exact", out=tmp_path / "run")
    return tmp_path / "run"


def test_every_final_text_has_its_judgement(folder):
    answers = list(read_answers(folder / OUTCOMES_FILE))
    alone = [answer for answer in answers if answer.kind == "alone"]
    assert len(alone) == 2 * QUESTIONS
    assert {answer.who for answer in answers} == {"low", "high", "low+high"}
    for answer in answers:
        assert answer.extracted
        assert answer.extracted in answer.text
        assert (answer.score, answer.verdict) in ((1.0, "right"), (0.0, "wrong"))


def test_a_judgement_is_what_the_item_s_scorer_says(folder):
    items = {make_item(f"What is {k} + {k}?", str(2 * k)).id: str(2 * k) for k in range(QUESTIONS)}
    for answer in read_answers(folder / OUTCOMES_FILE):
        assert (answer.extracted == items[answer.item]) == (answer.verdict == "right")


def test_json_gives_all_answers_of_a_verdict_one_a_line(folder, capsys):
    report.show_answers(folder, "wrong", as_json=True)
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert found
    assert {answer["verdict"] for answer in found} == {"wrong"}
    report.show_answers(folder, "all", as_json=True)
    assert len(capsys.readouterr().out.splitlines()) > len(found)


def test_the_table_shows_counts_and_what_was_read(folder, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    report.show_answers(folder, "right", as_json=False)
    shown = capsys.readouterr().out
    assert f"{sum(answer.verdict == 'right' for answer in read_answers(folder / OUTCOMES_FILE))} right" in shown
    assert "high alone" in shown
    report.show_answers(folder, "error", as_json=False)
    assert "no such answer" in capsys.readouterr().out


def test_an_unknown_verdict_names_the_nearest(folder):
    with pytest.raises(ConfigError, match=r"--answers: expected right.*got 'unparsd' .did you mean 'unparsed'"):
        report.show_answers(folder, "unparsd", as_json=False)


def test_a_folder_without_outcomes_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"holds no outcomes; give the folder that a sweep named"):
        report.show_answers(tmp_path, "all", as_json=False)


def test_a_file_of_before_and_a_broken_one_are_told_apart(tmp_path):
    with sqlite3.connect(tmp_path / OUTCOMES_FILE) as file:
        file.execute("CREATE TABLE run (x)")
    with pytest.raises(ConfigError, match=r"no judgements: it is of an older collabsim"):
        list(read_answers(tmp_path / OUTCOMES_FILE))
    (tmp_path / "broken").write_text("no database at all, but long enough to be read as one" * 40)
    with pytest.raises(StoreError, match=r"broken cannot be read"):
        list(read_answers(tmp_path / "broken"))
