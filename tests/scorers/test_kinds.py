"""A kind of answer is one subclass and one line: a package that adds one is loaded, scored, voted and swept like ours."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from collabsim import GenerationStore, Pool, SimulatedModel, System, load_task, plugins, score_answer, sweep
from collabsim.errors import ConfigError, DataError
from collabsim.scorers import AnswerScorer, registered_kinds, scorer_for
from collabsim.scorers.kinds import INFERRED

ROOT = Path(__file__).parents[2]

CLOCK = '''
"""Times of the day as answers: 3:05 and 03:05 are one."""

import re

from collabsim.item import Answer
from collabsim.scorers import AnswerScorer

TIME = re.compile(r"([0-9]{1,2}):([0-9]{2})")


class ClockScorer(AnswerScorer):
    kind = "clock"
    placeholder = "<hh:mm>"
    fields = ("zone",)

    def extract(self, text, view, finish="stop"):
        times = list(TIME.finditer(text))
        return self.gold(times[-1][0], view) if times and finish == "stop" else None

    def gold(self, text, view):
        time = TIME.fullmatch(text)
        return Answer(text, (int(time[1]), int(time[2]))) if time else None

    def chance(self, gold, choices, stated):
        return 1 / 1440
'''


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package with one kind, as an installer leaves it; gone again after the test."""
    (tmp_path / "clock_kind.py").write_text(CLOCK)
    folder = tmp_path / "clock_kind-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: clock-kind\nVersion: 1.0\n")
    lines = ["clock = clock_kind:ClockScorer", "broken = clock_kind:Absent", "misnamed = clock_kind:ClockScorer"]
    (folder / "entry_points.txt").write_text("\n".join(["[collabsim.kinds]", *lines]) + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    _forget()
    yield tmp_path
    _forget()


def _forget():
    plugins.read_again()
    scorer_for.cache_clear()


@pytest.fixture
def task(installed, tmp_path):
    rows = [{"question": f"When does train {k} leave?", "answer": f"{k}:05"} for k in range(3, 9)]
    path = tmp_path / "trains.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return load_task(f"jsonl:{path}", kind="clock")


def test_a_task_of_a_new_kind_asks_and_judges_as_the_kind_says(task):
    first = task.items[0]
    assert task.kind == "clock"
    assert first.view.messages[-1].content.endswith("End with one line: Answer: <hh:mm>")
    assert first.chance == 1 / 1440
    hour = first.gold_text.partition(":")[0]
    assert first.score(f"It leaves at 0{hour}:05").verdict == "right"
    assert first.score("It leaves at noon").verdict == "unparsed"


def test_a_gold_that_the_new_kind_cannot_read_is_left_out(installed):
    rows = [{"question": "When?", "answer": "3:05"}, {"question": "And then?", "answer": "soon"}]
    assert load_task(rows, kind="clock").notes == {"unscorable_gold": 1}


def test_answers_of_a_new_kind_are_voted_and_swept(task):
    pool = Pool({f"m{k}": SimulatedModel(name=f"m{k}", skill=20.0) for k in range(3)})
    result = sweep(System("majority_vote", pool, store=GenerationStore(None)), task, method="exact")
    assert result.values["v"]["m0+m1+m2"] == result.values["v"]["m1"] == 1.0
    answers = task.items[0].answers
    given = [answers.extract(text) for text in ("3:05", "at 03:05", "at 4:00")]
    assert answers.group(given) == [[0, 1], [2]]


def test_one_reply_of_a_new_kind_is_scored(installed):
    assert score_answer("clock", "at 03:05", "3:05", fields={"zone": "UTC"}).score == 1.0
    with pytest.raises(DataError, match="expected an answer of kind clock, got 'soon'"):
        score_answer("clock", "at 03:05", "soon")


def test_the_command_line_scores_a_new_kind(installed):
    rows = [{"response": "at 03:05", "gold": "3:05", "zone": "UTC"}, {"response": "later", "gold": "3:05"}]
    command = [str(Path(sys.executable).with_name("collabsim")), "score", "--kind", "clock"]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    done = subprocess.run(
        command, input=lines, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(installed)}
    )
    assert [json.loads(line)["verdict"] for line in done.stdout.splitlines()] == ["right", "unparsed"]


def test_a_kind_that_cannot_be_loaded_says_why(installed):
    with pytest.raises(ConfigError, match=r"'broken' cannot be loaded from 'clock_kind:Absent'"):
        scorer_for("broken")
    with pytest.raises(ConfigError, match=r"expected 'clock_kind:ClockScorer' to be .* with kind = 'misnamed'"):
        scorer_for("misnamed")


def test_the_door_loads_no_kind_before_it_is_asked_for():
    code = (
        "import sys; from collabsim.scorers import scorer_for; before = set(sys.modules); scorer_for('choice'); "
        "rooms = [{m.split('.')[2] for m in names if 'collabsim.scorers.' in m} for names in (before, sys.modules)]; "
        "print(sorted(rooms[0]), sorted(rooms[1] - rooms[0]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['kinds', 'reading'] ['choice']"


def test_an_unknown_kind_names_the_nearest():
    with pytest.raises(ConfigError, match=r"unknown kind of answer 'numbre'.*did you mean 'number'"):
        scorer_for("numbre")


def test_installing_a_kind_changes_no_inferred_one(installed):
    assert load_task([{"question": "When?", "answer": "3:05"}]).kind == "exact"


@pytest.mark.parametrize("kind", ["choice", "code", "exact", "expression", "number", "text"])
def test_our_kinds_are_registered_under_their_names(kind):
    scorer = scorer_for(kind)
    assert isinstance(scorer, AnswerScorer)
    assert scorer.kind == kind


def test_inferred_kinds_exist_and_the_last_takes_any_gold():
    assert set(INFERRED) <= set(registered_kinds())
    assert scorer_for(INFERRED[-1]).shown_by(["anything"], {}, {})


NAMED = re.compile(r"""kind\s*(?:==|!=|(?:not )?in)\s*[("'\[{]""")


def test_no_module_outside_the_scorers_branches_on_a_kind_of_answer():
    """The worst case of a new kind: `if item.view.kind == "code"` in another room."""
    assert NAMED.search('if item.view.kind == "code":')
    kinds = [*registered_kinds(), "verifier"]
    branches = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for folder in ("collabsim", "graphs", "trainers")
        for path in (ROOT / folder).rglob("*.py")
        if "scorers" not in path.parts
        for line in path.read_text(encoding="utf-8").splitlines()
        if NAMED.search(line) and any(re.search(rf"[\"']{kind}[\"']", line) for kind in kinds)
    ]
    assert branches == []


def test_what_counts_as_right_is_shown_for_scripts_too():
    """The listing of a task with `cases` instead of `tests` ended with a KeyError."""
    row = {"question": "Double it.", "cases": [{"stdin": "2", "stdout": "4"}], "answer": "print(2 * int(input()))"}
    (item,) = load_task([row], kind="code", self_test="none").items
    assert item.scorer.shown_golds(item) == ["print(2 * int(input()))", "'2' -> '4'"]
