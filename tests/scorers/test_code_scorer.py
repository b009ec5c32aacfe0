"""Programs as answers: every row of CASES CX, and what a scorer of code promises beyond."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from code_boxes import item, require_sandbox

from collabsim.errors import PrerequisiteError
from collabsim.item import Item
from collabsim.sandbox import Report, Sandbox, floor
from collabsim.scorers.code.code_scorer import CodeScorer, entry_point_of
from collabsim.scorers.code.printed_output import same_output
from collabsim.tasks.building import scorer_for

F = "def f(x):\n    return x + 1"
TESTS = "assert f(1) == 2\nassert f(5) == 6"
FENCE = "```"


@pytest.fixture(autouse=True)
def sandbox():
    require_sandbox()


def fenced(code: str, tag: str = "python") -> str:
    return f"{FENCE}{tag}\n{code}\n{FENCE}"


def verdict(text: str, finish: str = "stop", **extra) -> tuple[float | None, str]:
    score = item(**{"tests": TESTS, **extra}).score(text, finish)
    return score.score, score.verdict


RIGHT, WRONG, UNPARSED = (1.0, "right"), (0.0, "wrong"), (0.0, "unparsed")


def test_cx01_an_untagged_fence_is_run():
    assert verdict(fenced(F, "")) == RIGHT


def test_cx03_an_open_fence_is_run():
    assert verdict(f"{FENCE}python\n{F}") == RIGHT


def test_cx03_a_cut_inside_the_program_is_flagged():
    score = item(tests=TESTS).score(f"{FENCE}python\ndef f(x):\n    x = x", "length")
    assert (score.score, score.verdict) == WRONG
    assert score.reason.startswith("truncated; ")


def test_cx03_a_cut_program_that_does_not_parse_is_no_answer():
    score = item(tests=TESTS).score(f"{FENCE}python\ndef f(x):\n    return (x", "length")
    assert (score.score, score.verdict) == UNPARSED
    assert "truncated" in score.reason


def test_cx05_prose_between_blocks_is_not_run():
    assert verdict(f"{fenced('pip install f', 'bash')}\nThen this code:\n{fenced(F)}") == RIGHT


@pytest.mark.parametrize(
    "code",
    [
        f"{F}\nimport sys\nsys.exit(0)",
        "import os\ndef f(x):\n    os._exit(0)",
        "import os, atexit\natexit.register(os._exit, 0)\ndef f(x):\n    raise SystemExit(0)",
        "raise SystemExit",
        "def f(x):\n    exit()",
    ],
)
def test_cx07_an_exit_is_no_pass(code):
    assert verdict(fenced(code)) == WRONG


def test_cx09_a_program_that_logs_the_word_assertion_error_passes():
    assert verdict(fenced("def f(x):\n    print('AssertionError')\n    return x + 1")) == RIGHT


def test_cx09_the_reason_is_the_exception():
    assert item(tests=TESTS).score(fenced("def f(x):\n    return {}[x]")).reason == "KeyError: 1"
    assert item(tests=TESTS).score(fenced("def f(x):\n    return 2")).reason == "AssertionError: assert f(5) == 6"


def test_cx11_a_slow_right_program_passes():
    assert verdict(fenced("import time\ndef f(x):\n    time.sleep(0.06)\n    return x + 1")) == RIGHT


def test_cx11_the_limits_have_a_floor_of_seconds():
    limits = Sandbox(workers=1).limits
    assert limits.cpu_seconds >= 3
    assert limits.wall_seconds >= 3 * limits.cpu_seconds


def test_cx13_printed_numbers_are_compared_within_the_tolerance_of_the_task():
    cases = [{"stdin": "0.1 0.2\n", "stdout": "0.3\n"}]
    text = fenced("print(sum(map(float, input().split())))")
    assert verdict(text, cases=cases, tolerance=1e-9) == RIGHT
    assert verdict(text, cases=cases) == WRONG


def test_cx13_bytes_written_to_the_buffer_are_seen():
    text = fenced("import sys\nsys.stdout.buffer.write(sys.stdin.buffer.read()[::-1])")
    assert verdict(text, cases=[{"stdin": "abc", "stdout": "cba"}]) == RIGHT


def test_cx13_what_goes_to_standard_error_is_not_compared():
    text = fenced("import sys\nprint('log', file=sys.stderr)\nprint(input())")
    assert verdict(text, cases=[{"stdin": "7\n", "stdout": "7"}]) == RIGHT


def test_a_script_may_exit_and_one_that_fails_has_not_passed():
    cases = [{"stdin": "", "stdout": "1"}]
    assert verdict(fenced("print(1)\nexit(0)"), cases=cases) == RIGHT
    assert verdict(fenced("print(1)\n1 / 0"), cases=cases) == WRONG


def test_every_case_counts():
    cases = [{"stdin": "1", "stdout": "1"}, {"stdin": "2", "stdout": "4"}]
    assert verdict(fenced("print(int(input()) ** 2)"), cases=cases) == RIGHT
    assert verdict(fenced("print(int(input()))"), cases=cases) == WRONG


@pytest.mark.parametrize(
    ("printed", "wanted", "tolerance", "same"),
    [
        ("1 2\n", "1 2", None, True),
        ("1 2 \n\n", "1 2", None, True),
        (" 1", "1", None, False),
        ("1\n2", "1 2", None, False),
        ("1.0", "1", None, False),
        ("1.0", "1", 1e-6, True),
        ("x 1.0000001", "x 1", 1e-6, True),
        ("y 1", "x 1", 1e-6, False),
        ("nan", "1", 1e-6, False),
        ("inf", "1e400", 1e-6, False),
        ("1", "1 2", 1e-6, False),
    ],
)
def test_output_is_compared_by_line_and_with_a_tolerance_by_word(printed, wanted, tolerance, same):
    assert same_output(printed, wanted, tolerance) is same


@pytest.mark.parametrize(
    "text", ["", "  \n", "I do not know.", "<think>def f(x): return x + 1", fenced("echo 1", "bash")]
)
def test_a_reply_without_a_program_is_unparsed(text):
    assert verdict(text) == UNPARSED


def test_a_filtered_reply_answers_nothing():
    assert verdict(fenced(F), "content_filter") == UNPARSED


def test_code_in_the_thinking_is_not_the_answer():
    assert verdict(f"<think>{fenced('def f(x): return 0')}</think>{fenced(F)}") == RIGHT


def test_tests_may_be_a_list():
    assert verdict(fenced(F), tests=["assert f(1) == 2", "assert f(2) == 3"]) == RIGHT


def test_tests_may_be_a_check_that_nobody_calls():
    tests = "def check(candidate):\n    assert candidate(1) == 2"
    assert verdict(fenced(F), tests=tests, entry_point="f") == RIGHT
    assert verdict(fenced("def f(x):\n    return x"), tests=tests, entry_point="f") == WRONG


def test_tests_may_call_their_check_themselves():
    tests = "def check(candidate):\n    assert candidate(1) == 2\n\ncheck(f)"
    assert verdict(fenced(F), tests=tests, entry_point="f") == RIGHT


def test_a_body_alone_is_run_after_its_prompt():
    prompt = 'from typing import List\n\ndef g(x):\n    return x + 1\n\ndef f(x) -> List[int]:\n    """Ask."""\n'
    assert verdict("    return g(x)", prompt=prompt) == RIGHT
    assert verdict("    return g(x) + 1", prompt=prompt) == WRONG


def test_imports_and_helpers_of_the_prompt_are_there_for_a_whole_function_too():
    prompt = 'from typing import List\n\ndef g(x):\n    return x + 1\n\ndef f(x) -> List[int]:\n    """Ask."""\n'
    assert verdict(fenced("def f(x: int) -> List[int]:\n    return g(x)"), prompt=prompt) == RIGHT


def test_a_helper_of_the_prompt_that_tests_rely_on_cannot_be_replaced():
    prompt = 'def value(x):\n    return x * x - 4\n\ndef root():\n    """Find x with value(x) == 0."""\n'
    tests = "def check(candidate):\n    assert value(candidate()) == 0"
    assert verdict(fenced("def root():\n    return 2"), prompt=prompt, tests=tests) == RIGHT
    cheat = "def value(x):\n    return 0\ndef root():\n    return 3"
    assert verdict(fenced(cheat), prompt=prompt, tests=tests) == WRONG


def test_the_setup_of_an_item_comes_first():
    assert verdict(fenced("def f(x):\n    return x + ONE"), setup="ONE = 1") == RIGHT


@pytest.mark.parametrize("tests", ["", "assert f(1) ==", None])
def test_tests_that_are_none_are_an_error_and_not_the_programs(tests):
    assert verdict(fenced(F), tests=tests) == (None, "error")


def test_a_setup_that_fails_is_an_error_and_not_the_programs():
    assert verdict(fenced(F), setup="1 / 0") == (None, "error")


class Broken:
    workers = 1
    runs = 0

    def run(self, work) -> Report:
        self.runs += 1
        return Report("error", "no worker")


def test_an_error_of_the_sandbox_is_neither_right_nor_wrong_and_not_remembered():
    sandbox = Broken()
    scorer = CodeScorer(sandbox)  # type: ignore[arg-type]
    asked = item(tests=TESTS)
    scores = [scorer.score(fenced(F), asked) for _ in range(2)]
    assert [(score.score, score.verdict) for score in scores] == [(None, "error")] * 2
    assert sandbox.runs == 2


class Counting(Broken):
    def run(self, work) -> Report:
        self.runs += 1
        return Report("passed")


def test_a_score_is_remembered():
    sandbox = Counting()
    scorer = CodeScorer(sandbox)  # type: ignore[arg-type]
    asked = item(tests=TESTS)
    assert scorer.score(fenced(F), asked) == scorer.score(fenced(F), asked)
    assert sandbox.runs == 1


def test_two_programs_that_differ_in_comments_are_one_answer():
    asked = item("def f(x):\n    '''Add one.'''", tests=TESTS)
    texts = [fenced(F), fenced("def f(x):\n    # add\n    return x+1"), fenced("def f(x):\n    return 1 + x")]
    answers = [asked.answers.extract(text) for text in texts]
    assert None not in answers
    assert asked.answers.group(answers) == [[0, 1], [2]]  # type: ignore[arg-type]


def test_a_reference_solution_in_the_asked_form_scores_one():
    asked = item(tests=TESTS)
    gold = CodeScorer().gold(F, asked.view)
    assert gold is not None
    assert asked.score(fenced(gold.text)).score == 1.0


@pytest.mark.parametrize(
    ("question", "extra", "name"),
    [
        ("", {"entry_point": "g", "tests": TESTS}, "g"),
        ("Do it.", {"tests": TESTS}, "f"),
        ("Complete\ndef h(x):\n    '''Ask.'''\n", {"tests": "def check(candidate):\n    assert candidate(g(1))"}, "h"),
        (
            "Your code should pass: assert sum(1, 2) == 3",
            {"tests": "def check(candidate):\n    assert candidate(1, 2) == 3"},
            "sum",
        ),
        (
            "Your code should pass: assert check(1) == 3",
            {"tests": "def check(candidate):\n    assert candidate(1) == 3"},
            "check",
        ),
        ("Read numbers.", {"cases": [{"stdout": ""}]}, None),
    ],
)
def test_the_name_to_call_is_found(question, extra, name):
    assert entry_point_of(item(question, **extra)) == name


def test_several_programs_run_at_once():
    asked = [item(f"task {number}", tests=TESTS) for number in range(4)]
    slow = fenced("import time\ndef f(x):\n    time.sleep(0.5)\n    return x + 1")
    with Sandbox(workers=4) as sandbox:
        scorer = CodeScorer(sandbox)
        scorer.score_all([fenced(F)] * 4, asked)
        started = time.monotonic()
        scores = scorer.score_all([slow] * 4, asked)
    assert [score.score for score in scores] == [1.0] * 4
    assert time.monotonic() - started < 3.5  # one after the other: 4 s at least


def test_scores_agree_from_threads():
    asked = item(tests=TESTS)
    texts = [fenced(F), fenced("def f(x):\n    return x")] * 4
    with ThreadPoolExecutor(8) as threads:
        assert [score.score for score in threads.map(asked.score, texts)] == [1.0, 0.0] * 4


async def test_scoring_in_a_thread_leaves_the_event_loop_free():
    asked: Item = item(tests=TESTS)
    slow = fenced("import time\ndef f(x):\n    time.sleep(0.3)\n    return x + 1")
    running = asyncio.ensure_future(asyncio.to_thread(asked.score, slow))
    turns = 0
    while not running.done():
        turns += 1
        await asyncio.sleep(0.01)
    assert running.result().score == 1.0
    assert turns > 5


def test_the_kind_is_known_by_name():
    assert isinstance(scorer_for("code"), CodeScorer)


def test_below_the_floor_nothing_runs_and_the_message_says_what_to_do(monkeypatch):
    report = floor.SandboxReport(False, "no Landlock", "use Linux 5.13 or later")
    monkeypatch.setattr(floor, "sandbox_report", lambda: report)
    with pytest.raises(PrerequisiteError, match=r"no Landlock.*use Linux 5\.13"):
        Sandbox()


def test_other_systems_are_below_the_floor(monkeypatch):
    monkeypatch.setattr(floor.sys, "platform", "darwin")
    report = floor.sandbox_report.__wrapped__()
    assert not report.ready
    assert "macOS" in report.available
