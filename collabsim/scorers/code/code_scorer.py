"""Programs as answers: right when they pass the item's tests in the sandbox.

In: a reply, and tests in `item.extra`: `tests` (assertions, a list of them, or a function `check(candidate)`), or `cases`
(`stdin` and `stdout` of a script, compared line by line, numbers within `tolerance` where the task gives one); optionally
`entry_point`, `prompt` (code that replies may continue), `setup`. Out: right, wrong with the reason, or an
error when the sandbox itself failed, which counts as neither. Two programs are the same answer when they differ in
comments, docstrings and layout only. Left out on purpose: partial credit for some of the tests.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from collabsim.item import Answer, Item, ItemView, Score
from collabsim.scorers.code.code_blocks import Program, program_in
from collabsim.scorers.code.printed_output import same_output
from collabsim.scorers.code.python_source import asked_name, canonical, name_under_test, parsed, preamble
from collabsim.scorers.reading.python_syntax import syntax_tree
from collabsim.scorers.reading.scoring import NO_ANSWER, AnswerScorer
from collabsim.scorers.reading.text import final_part

if TYPE_CHECKING:
    from collabsim.sandbox import Report, Sandbox

MOST_REMEMBERED = 1 << 14


class CodeScorer(AnswerScorer):
    """Scores programs by running them; the canonical value is the normalised source."""

    kind = "code"
    waits = True
    gold_is_example = True
    judged_by = ("tests", "cases")
    fields = ("tests", "entry_point")
    golds_title = "tests that a program must pass"

    def __init__(self, sandbox: Sandbox | None = None) -> None:
        """`sandbox` None takes the one that all scorers of this process share, started on first use."""
        self._sandbox = sandbox
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str, str], Score] = OrderedDict()

    def extract(self, text: str, view: ItemView, finish: str = "stop") -> Answer | None:
        """The program that `text` commits to, or None."""
        question = view.messages[-1].content if view.messages else ""
        program = _program(text, _asked_by(question), question, finish)
        return None if program is None else Answer(program.source, canonical(program.source))

    def gold(self, text: str, view: ItemView) -> Answer | None:  # noqa: ARG002
        """A reference solution as an answer; None for an empty one."""
        return Answer(text, canonical(text)) if text.strip() else None

    def shown_by(self, golds: Sequence[str], choices: Mapping[str, str], fields: Mapping[str, Any]) -> bool:  # noqa: ARG002
        """Whether there are tests, or cases of input and output."""
        return any(fields.get(name) for name in self.judged_by)

    def ending(self, fields: Mapping[str, Any]) -> str:
        """The last paragraph of the task's own prompt: one code block, and the name that the tests call."""
        named = fields.get("entry_point")
        return "Reply with one Python code block" + (f" that defines `{named}`." if named else ".")

    def asked_form(self, gold: str, template: str | None = None) -> str:  # noqa: ARG002
        """A reference solution in a code block, whatever the template says."""
        return f"```python\n{gold.strip()}\n```"

    def written_forms(self, gold: str, template: str | None = None) -> list[str]:
        """The one form of a program."""
        return [self.asked_form(gold, template)]

    def missing(self, options: Any, fields: Mapping[str, Any]) -> str | None:  # noqa: ARG002
        """A message when there are no tests."""
        if fields.get("tests"):
            return None
        return "tests: expected the tests of a program, got none; kind code needs tests and entry_point"

    def defect(self, item: Item) -> str | None:
        """`no_tests` for an item without tests or cases, `broken_tests` when they are no Python."""
        tests = item.extra.get("tests") or ""
        if not tests and not item.extra.get("cases"):
            return "no_tests"
        try:
            for source in (_setup(item), "\n".join(map(str, tests)) if isinstance(tests, list) else str(tests)):
                syntax_tree(source)
        except (SyntaxError, ValueError):
            return "broken_tests"
        return None

    def shown_golds(self, item: Item) -> list[str]:
        """The reference solution, if there is one, and the tests, or the inputs and outputs of a script."""
        reference = [item.gold_text] if item.gold_text else []
        cases = [f"{case.get('stdin', '')!r} -> {case['stdout']!r}" for case in item.extra.get("cases") or ()]
        tests = item.extra.get("tests") or cases
        return [*reference, *([tests] if isinstance(tests, str) else tests)]

    def score(self, text: str, item: Item, finish: str = "stop") -> Score:
        """The score of `text` as a final output for `item`. Remembered, unless the sandbox failed."""
        key = (item.id, text, finish)
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        score = self.judge(text, item, finish)
        if score.score is not None:
            with self._lock:
                self._known[key] = score
                if len(self._known) > MOST_REMEMBERED:
                    self._known.popitem(last=False)
        return score

    def score_all(self, texts: Sequence[str], items: Sequence[Item]) -> list[Score]:
        """The scores of many texts, one item each, as many at once as there are workers in the sandbox."""
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(self._runs_in.workers) as threads:
            return list(threads.map(self.score, texts, items))

    def judge(self, text: str, item: Item, finish: str) -> Score:
        """`score` without memory. Raises `PrerequisiteError` on a machine that has no sandbox."""
        prompt = str(item.extra.get("prompt") or item.question)
        entry_point = entry_point_of(item)
        program = _program(text, entry_point, prompt, finish)
        if program is None:
            return Score(0.0, "unparsed", None, _why_no_program(text, finish))
        cases = item.extra.get("cases")
        report = self._printed(program, cases, item) if cases else self._tested(program, item, entry_point)
        return _score(report, program)

    @property
    def _runs_in(self) -> Sandbox:
        from collabsim.sandbox import shared_sandbox

        return self._sandbox or shared_sandbox()

    def _tested(self, program: Program, item: Item, entry_point: str | None) -> Report:
        from collabsim.sandbox import Examination, Report

        tests = _as_text(item.extra.get("tests") or item.extra.get("test") or "")
        if not tests.strip() or parsed(tests) is None:
            return Report("broken", "the item's tests are empty or no Python")
        setup = "\n".join([preamble(str(item.extra.get("prompt") or item.question), entry_point), _setup(item)])
        return self._runs_in.run(Examination(program.source, tests, entry_point, setup))

    def _printed(self, program: Program, cases: Sequence[Mapping[str, Any]], item: Item) -> Report:
        """The first report of a script that does not print what its case says, else the last."""
        from collabsim.sandbox import Report, Script

        tolerance = item.extra.get("tolerance")
        report = Report("broken", "the item has no cases")
        for number, case in enumerate(cases, 1):
            report = self._runs_in.run(Script(program.source, str(case.get("stdin", ""))))
            if report.ending != "passed":
                return report
            printed, wanted = report.output.decode("utf-8", "replace"), str(case["stdout"])
            if not same_output(printed, wanted, tolerance):
                return Report("failed", f"case {number}: printed {printed[:80]!r}, expected {wanted[:80]!r}")
        return report


def entry_point_of(item: Item) -> str | None:
    """The name that the item's tests call: as the item says, else read from its tests, prompt or question."""
    if named := item.extra.get("entry_point"):
        return str(named)
    if item.extra.get("cases"):
        return None
    tests = _as_text(item.extra.get("tests") or item.extra.get("test") or "")
    asked, tested = (
        _asked_by(str(item.extra.get("prompt") or item.question)),
        name_under_test(tests, even_built_in=False),
    )
    return asked or tested if "candidate" in tests else tested or asked


_SHOWN_TEST = re.compile(r"(?m)^.*?\bassert\b[^\n]*")
"""A test that a question shows: `>>> assert f(1) == 2`."""


def _asked_by(question: str) -> str | None:
    """The function that a question asks for: the one it leaves open, or the one that the test it shows calls."""
    shown = (match[0][match[0].index("assert") :] for match in _SHOWN_TEST.finditer(question))
    named = (name_under_test(test, even_built_in=True) for test in shown)
    return asked_name(question) or next((name for name in named if name), None)


def _program(text: str, entry_point: str | None, prompt: str, finish: str) -> Program | None:
    part = None if finish in NO_ANSWER else final_part(text)
    return None if part is None else program_in(part, entry_point, prompt, cut=finish != "stop")


def _setup(item: Item) -> str:
    return str(item.extra.get("setup") or "")


def _as_text(tests: Any) -> str:
    return tests if isinstance(tests, str) else "\n".join(map(str, tests))


def _why_no_program(text: str, finish: str) -> str:
    if finish in NO_ANSWER:
        return f"no answer: {finish}"
    if not text.strip():
        return "empty"
    return "truncated before a whole program" if finish != "stop" else "no program found"


def _score(report: Report, program: Program) -> Score:
    if report.ending in ("error", "broken"):
        return Score(None, "error", program.source, report.reason)
    if report.ending == "passed":
        return Score(1.0, "right", program.source)
    reason = f"truncated; {report.reason}" if program.truncated else report.reason
    return Score(0.0, "wrong", program.source, reason)
