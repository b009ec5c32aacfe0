"""Equality of expressions in a process of its own: verdicts, limits, and what happens to the process."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from collabsim.errors import ScoringError
from collabsim.item import Item, ItemView
from collabsim.scorers.mathematics import symbolic_equality as equivalence
from collabsim.scorers.mathematics.parser import parse
from collabsim.scorers.mathematics.symbolic_equality import WORKER, equal_nodes, equal_notation
from collabsim.tasks import score_answer, scorer_for


def plain_request(a, b):
    return {"a": equivalence._plain(parse(a)), "b": equivalence._plain(parse(b)), "up_to_factor": False}


@pytest.fixture
def fresh_worker(monkeypatch):
    """A worker of the test's own, in place of the process's."""
    worker = equivalence.EquivalenceWorker()
    monkeypatch.setattr(equivalence, "WORKER", worker)
    equivalence._decided.cache_clear()
    equivalence._verified.cache_clear()
    yield worker
    worker.close()


EQUAL = [
    ("(x+1)^2", "x^2+2x+1"),
    ("\\sqrt{12}", "2\\sqrt{3}"),
    ("\\sin^2 x + \\cos^2 x", "1"),
    ("\\frac{x^2-1}{x-1}", "x+1"),
    ("e^{iπ}", "-1"),
    ("\\sqrt{5+2\\sqrt{6}}", "\\sqrt{2}+\\sqrt{3}"),
    ("|x|", "\\sqrt{x^2}"),
    ("\\sqrt{x}\\sqrt{y}", "\\sqrt{xy}"),
    ("\\sqrt{2} - \\sqrt{2}", "0"),
]
DIFFERENT = [
    ("(x+1)^2", "x^2+1"),
    ("|x|", "x"),
    ("x", "y"),
    ("\\sqrt{2}", "1.41421356237"),
    ("π", "\\frac{355}{113}"),
    ("\\sin x", "x"),
    ("x^{100}", "x^{101}"),
    ("\\frac{\\sqrt{2}}{2000!}", "\\frac{\\sqrt{2}}{2001!}"),
]


@pytest.mark.parametrize(("a", "b"), EQUAL)
def test_equal_expressions_are_equal_in_either_order(a, b):
    assert equal_nodes(parse(a), parse(b))
    assert equal_nodes(parse(b), parse(a))


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_different_expressions_are_different_in_either_order(a, b):
    assert not equal_nodes(parse(a), parse(b))
    assert not equal_nodes(parse(b), parse(a))


def test_rational_numbers_never_reach_the_worker(fresh_worker):
    assert not equal_nodes(parse("\\frac{1}{2004!}"), parse("\\frac{1}{2006!}"))
    assert equal_nodes(parse("\\frac{2006!}{2005!}"), parse("2006"))
    assert fresh_worker.process is None


def test_what_our_grammar_cannot_read_is_left_to_math_verify():
    assert equal_notation("\\sum_{k=1}^{4} k", "10")
    assert not equal_notation("\\sum_{k=1}^{4} k", "11")


def answered(request):
    """What a worker answers, in a process of its own: its limits on memory and time would end one that holds engines."""
    program = (
        "import json, sys; from collabsim.scorers.mathematics.symbolic_worker import answer; print(json.dumps(answer("
    )
    program += "json.load(sys.stdin))))"
    asked = json.dumps(request)
    done = subprocess.run([sys.executable, "-c", program], input=asked, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_a_worker_finds_real_points_for_a_narrow_domain():
    assert answered(plain_request("\\ln(x^2)", "2\\ln|x|")) == {"verdict": "same"}
    assert answered(plain_request("\\sqrt{-x^2-1}", "i\\sqrt{x^2+1}")) == {"verdict": "same"}


MONSTERS = [
    "9^{9^{9^{9}}}",
    "(x+1)^{10^6}",
    "((((((x^99)^99)^99)^99)^99)^99)^{y}",
    "2^{2^{2^{2^{x}}}}",
    "e^{e^{e^{e^{e^{x}}}}}",
    "(x!)!",
    "(10^6)!",
    "\\sum_{k=1}^{10^9} \\sin(k)",
    "\\int_0^1 e^{x^{x^{x}}} dx",
    "(" * 400 + "x" + ")" * 400,
    "\\sqrt{" * 60 + "x" + "}" * 60,
    "9" * 900,
    "\\frac{" * 150 + "1" + "}{2}" * 150,
]


@pytest.mark.parametrize("monster", MONSTERS, ids=lambda text: text[:20])
def test_a_monstrous_expression_is_wrong_and_costs_little(monster):
    equal_notation("\\lim_{x\\to 0} x", "1")  # the worker is warm
    worker = WORKER.process
    before = time.process_time()
    assert score_answer("expression", f"\\boxed{{{monster}}}", "7").score == 0.0
    assert time.process_time() - before < 1.0  # of this process; the worker ends by its own limit
    assert WORKER.process is worker or WORKER.process is None or WORKER.process.poll() is None


def test_the_worker_survives_what_it_cannot_decide(fresh_worker):
    assert fresh_worker.ask({"first": "7", "second": "\\prod_{k=1}^{100000} (x+k)"}) == "undecided"
    assert fresh_worker.ask(plain_request("x+x", "2x")) == "same"


def test_a_worker_that_is_killed_is_replaced(fresh_worker):
    assert fresh_worker.ask(plain_request("x+x", "2x")) == "same"
    first = fresh_worker.process
    os.kill(first.pid, signal.SIGKILL)
    assert fresh_worker.ask(plain_request("x+x", "3x")) == "different"
    assert fresh_worker.process.pid != first.pid


def test_a_worker_that_cannot_be_had_is_an_error_and_is_not_remembered(fresh_worker, monkeypatch):
    view = ItemView("x", (), {}, "expression")
    item = Item("x", "?", "x^2+2x+1", view, scorer_for("expression"))
    monkeypatch.setattr(equivalence, "_BOOT", "raise SystemExit(3)  # {path} {file}")
    failed = item.score("Answer: (x+1)^2")
    assert (failed.score, failed.verdict, failed.extracted) == (None, "error", None)
    assert "failed twice" in failed.reason
    with pytest.raises(ScoringError):
        item.answers.group([item.answers.extract(text) for text in ("Answer: (x+1)^2", "Answer: x^2+2x+1")])
    monkeypatch.undo()
    assert item.score("Answer: (x+1)^2").score == 1.0


def test_a_worker_that_hangs_is_ended_and_is_an_error(fresh_worker, monkeypatch):
    monkeypatch.setattr(equivalence, "WALL_SECONDS", 0.3)
    monkeypatch.setattr(equivalence, "_BOOT", "import time; time.sleep(600)  # {path} {file}")
    with pytest.raises(ScoringError, match="no reply"):
        fresh_worker.ask(plain_request("x+x", "2x"))
    assert fresh_worker.process is None


def test_threads_share_one_worker(fresh_worker):
    found = {}

    def compare(k):
        found[k] = fresh_worker.ask(plain_request(f"{k}x+x", f"{k + 1}x" if k % 2 else f"{k}x"))

    threads = [threading.Thread(target=compare, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {k: "same" if k % 2 else "different" for k in range(8)}


async def test_answers_are_compared_inside_an_event_loop():
    texts = [f"Answer: (x+{k})^2" for k in range(1, 4)]
    golds = [f"x^2+{2 * k}x+{k * k}" for k in range(1, 4)]
    scores = await asyncio.gather(
        *(asyncio.to_thread(score_answer, "expression", *pair) for pair in zip(texts, golds, strict=True))
    )
    assert [score.score for score in scores] == [1.0] * 3
    assert score_answer("expression", "Answer: (x+9)^2", "x^2+18x+81").score == 1.0


def run_program(program, *, timeout=60):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=timeout, check=True
    ).stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_a_worker_of_its_own():
    shown = run_program("""
        import os
        from collabsim.tasks import score_answer
        from collabsim.scorers.mathematics.symbolic_equality import WORKER
        def equal(k): return score_answer("expression", f"Answer: (x+{k})^2", f"x^2+{2*k}x+{k*k}").score
        assert equal(1) == 1.0
        mine = WORKER.process.pid
        child = os.fork()
        if child == 0:
            ok = equal(2) == 1.0 and WORKER.process.pid != mine
            WORKER.close()
            os._exit(0 if ok else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), equal(3), WORKER.process.pid == mine)
        """)
    assert shown.split() == ["0", "1.0", "True"]


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("ending", ["pass", "os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_the_worker_ends_with_its_process(ending):
    program = f"""
import os, signal
from collabsim.tasks import score_answer
from collabsim.scorers.mathematics.symbolic_equality import WORKER
score_answer("expression", "Answer: (x+1)^2", "x^2+1")
print(WORKER.process.pid, flush=True)
{ending}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    pid = int(done.stdout)
    deadline = time.monotonic() + 20
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(pid)
