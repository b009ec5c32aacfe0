"""The tutorial runs from its first cell to its last, and is kept without outputs."""

from __future__ import annotations

import contextlib
import io
import json

import pytest
from engines import requires
from pages import ROOT, read

pytestmark = requires("matplotlib")  # the tutorial draws with the extra report
TUTORIAL = ROOT / "examples" / "tutorial.ipynb"
BOOK = json.loads(read(TUTORIAL))
CODE = ["".join(cell["source"]) for cell in BOOK["cells"] if cell["cell_type"] == "code"]


@pytest.fixture(autouse=True)
def pictures_without_a_window(monkeypatch):
    """`plt.show()` opens nothing, and no picture of one test is left for the next."""
    from matplotlib import pyplot

    monkeypatch.setattr(pyplot, "show", lambda: None)
    pyplot.switch_backend("Agg")
    yield pyplot
    pyplot.close("all")


def run(cells: list[str], names: dict) -> str:
    """What the cells print."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for number, cell in enumerate(cells, start=1):
            exec(compile(cell, f"tutorial, code cell {number}", "exec"), names)
    return printed.getvalue()


def training_begins() -> int:
    return next(number for number, cell in enumerate(CODE) if "import torch" in cell)


def test_a_protocol_is_defined_swept_and_looked_at(workspace):
    names: dict = {"__name__": "tutorial"}
    shown = run(CODE[: training_begins()], names)
    assert "expert   alone" in shown
    assert names["result"].v["novice+steady+expert"] > names["result"].v["novice"]
    assert names["debate"].cost.generated < names["debate"].cost.calls
    assert (workspace / "runs" / "tutorial" / "vote" / "values.json").exists()


@pytest.mark.slow
@requires("torch", "transformers")
def test_a_node_is_trained_and_swept_beside_its_start(workspace):
    names: dict = {"__name__": "tutorial"}
    run(CODE, names)
    before, after = names["trained"].values["before"], names["trained"].values["after"]
    assert after["individual"]["value"] > before["individual"]["value"]
    assert (workspace / "runs" / "tutorial" / "training" / "policy" / "model.safetensors").exists()


def test_the_picture_shows_every_seats_value_inside_its_interval(workspace, pictures_without_a_window):
    names: dict = {"__name__": "tutorial"}
    drawn = next(number for number, cell in enumerate(CODE) if "plt.show()" in cell)
    run(CODE[: drawn + 1], names)
    (axes,) = pictures_without_a_window.gcf().axes
    (points,) = axes.lines
    (intervals,) = axes.collections
    assert [label.get_text() for label in axes.get_yticklabels()] == ["novice", "steady", "expert"]
    assert list(points.get_xdata()) == [names["result"].shapley[seat].value for seat in ("novice", "steady", "expert")]
    for value, ((low, _), (high, _)) in zip(points.get_xdata(), intervals.get_segments(), strict=True):
        assert low <= value <= high


def test_it_is_a_notebook_without_outputs():
    assert (BOOK["nbformat"], BOOK["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in BOOK["cells"]}) == len(BOOK["cells"])
    assert [cell for cell in BOOK["cells"] if cell.get("outputs") or cell.get("execution_count")] == []


def test_its_lines_fit_on_a_screen():
    assert [line for cell in CODE for line in cell.splitlines() if len(line) > 120] == []
