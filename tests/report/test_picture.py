"""`collabsim report DIR --svg FILE`: the terminal's table as a picture."""

import json
import re

import pytest

from collabsim import Pool, SimulatedModel, System, Task, make_item, sweep
from collabsim.cli import report_command as report
from collabsim.errors import ConfigError, StoreError


@pytest.fixture
def folder(tmp_path):
    """A finished run of two members on three items."""
    items = tuple(make_item(f"What is {k} + {k}?", str(2 * k)) for k in range(3))
    pool = Pool(low=SimulatedModel(skill=-1.0), high=SimulatedModel(skill=1.0))
    sweep(System("majority_vote", pool), Task("sums", items), method="exact", out=tmp_path / "run")
    return tmp_path / "run"


def values_in(folder):
    return json.loads((folder / "values.json").read_text(encoding="utf-8"))


def words_in(svg):
    return re.sub(r"&#160;| +", " ", " ".join(re.findall(r">([^<>]+)</text>", svg)))


def test_the_picture_shows_every_player_with_its_value(folder):
    values = values_in(folder)
    words = words_in(report.picture(values))
    for player in ("low", "high"):
        assert player in words
        assert f"{values['shapley'][player]['value']:.3f}" in words


def test_the_picture_depends_on_the_values_alone(folder, monkeypatch):
    first = report.picture(values_in(folder))
    for name, value in {"COLUMNS": "40", "NO_COLOR": "1", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    assert report.picture(values_in(folder)) == first


def test_a_picture_is_written_to_the_file_that_was_named(folder, tmp_path, capsys):
    report.run(folder, svg=tmp_path / "table.svg", as_json=False)
    assert (tmp_path / "table.svg").read_text(encoding="utf-8") == report.picture(values_in(folder))
    assert "table.svg" in capsys.readouterr().out.replace("\n", "")


def test_nothing_is_left_beside_the_picture(folder, tmp_path):
    before = set(tmp_path.iterdir())
    report.run(folder, svg=tmp_path / "table.svg", as_json=False)
    assert set(tmp_path.iterdir()) == before | {tmp_path / "table.svg"}


@pytest.mark.parametrize("place", ["nowhere/table.svg", "file/table.svg", "run"])
def test_a_place_that_cannot_be_written_is_named(folder, tmp_path, place):
    (tmp_path / "file").write_text("a file is no folder")
    with pytest.raises(StoreError, match=f"cannot write .*{place}.*--svg"):
        report.run(folder, svg=tmp_path / place, as_json=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "run"]


def test_a_picture_and_json_at_once_are_refused(folder, tmp_path):
    with pytest.raises(ConfigError, match="--json and --svg"):
        report.run(folder, svg=tmp_path / "table.svg", as_json=True)
    assert not (tmp_path / "table.svg").exists()
