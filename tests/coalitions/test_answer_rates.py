"""Unparsed, truncated and chance rates stand beside every accuracy."""

import io
import re

import pytest
from rich.console import Console
from scripted import Scripted

from collabsim import Pool, System, Task, make_item, sweep
from collabsim.episode import Reply
from collabsim.report.terminal import show_values

ITEMS = tuple(make_item(f"What is {k} + {k}?", str(2 * k)) for k in range(4))


def place(request):
    """Which of `ITEMS` a request asks."""
    return int(re.search(r"What is (\d)", request.messages[-1].content)[1])


def rambling(request):
    """No answer to three of four questions, two of them cut."""
    k = place(request)
    return Reply("Well, let us think", finish="length") if k < 2 else "I do not know" if k == 2 else "Answer: 6"


def run(out=None, **models):
    pool = Pool(**{name: Scripted(name, say) for name, say in models.items()})
    return sweep(System("majority_vote", pool), Task("sums", ITEMS), method="exact", out=out)


@pytest.fixture
def values():
    return run(good=lambda request: f"Answer: {2 * place(request)}", bad=rambling).values


def test_rates_are_counted_for_seats_system_and_coalitions(values):
    rates = values["rates"]
    assert rates["unparsed"] == {"system": 0.0, "good": 0.0, "bad": 0.75}
    assert rates["truncated"] == {"system": 0.0, "good": 0.0, "bad": 0.5}
    assert rates["chance"] == 0.0
    assert rates["v"].keys() == values["v"].keys()
    assert rates["v"]["bad"]["unparsed"] == 0.75
    assert rates["v"]["good+bad"] == {"unparsed": 0.0, "truncated": 0.0}


def test_most_answers_unread_is_a_warning_with_the_way_to_look(values):
    (warning,) = values["warnings"]
    assert warning.startswith("75% of the answers of bad could not be read (truncated: 50%)")
    assert "collabsim report DIR --answers unparsed" in warning
    console = Console(file=io.StringIO(), width=200)
    show_values(values, console)
    shown = console.file.getvalue()
    assert f"warning: {warning}" in shown
    assert re.search(r"75%\s*\n.*50% cut", shown)


def test_readable_answers_bring_no_warning():
    assert run(good=lambda request: f"Answer: {2 * place(request)}").values["warnings"] == []


def test_one_letter_that_is_nearly_always_right_is_a_warning():
    items = tuple(make_item(f"q{n}?", "A" if n else "B", choices=["x", "y"]) for n in range(4))
    pool = Pool(a=Scripted("a", "Answer: A"))
    values = sweep(System("majority_vote", pool), Task("letters", items), method="exact").values
    (warning,) = values["warnings"]
    assert warning.startswith("75% of the golds are A")
    assert values["rates"]["chance"] == 0.5


def test_rates_are_the_same_after_a_resume(tmp_path):
    models = {"good": lambda request: f"Answer: {2 * place(request)}", "bad": rambling}
    first = run(tmp_path / "run", **models).values
    again = run(tmp_path / "run", **models).values
    assert again["rates"] == first["rates"]
    assert again["cost"]["generated"] == first["cost"]["generated"]


def test_values_of_before_are_still_shown(values):
    old = {**values, "rates": {name: values["rates"][name] for name in ("unparsed", "chance")}}
    del old["warnings"]
    console = Console(file=io.StringIO(), width=200)
    show_values(old, console)
    assert "75%" in console.file.getvalue()
