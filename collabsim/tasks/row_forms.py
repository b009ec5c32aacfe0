r"""Reads rows of well-known data sets: each function brings one native form into the common one.

In: a row as the data set stores it. Out: the same row with the common columns `question`, `answer`, `choices`, `topic`,
`kind`, `chance`, `tolerance`, `tests` and `entry_point` filled in as far as it has them. A row that no model could answer
from its text is `Unusable`, with a reason. Left out on purpose: which data set has which form; see `data_sets.py`.
"""

from __future__ import annotations

import ast
import builtins
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from collabsim.scorers.reading.declarations import declarations
from collabsim.scorers.reading.python_syntax import syntax_tree
from collabsim.tasks.record import Unusable

RawRow: TypeAlias = Mapping[str, Any]
Reader: TypeAlias = Callable[[RawRow], RawRow]

ROUNDED = 0.01
"""Relative tolerance of golds that are rounded decimals: theirs are off by up to half a unit of the third digit."""

_LETTERED = re.compile(r"^\(([A-Z])\) ?(.+)$", re.MULTILINE)
_DASHED = re.compile(r"^- *(\S.*?) *$", re.MULTILINE)
_TWO_SIDED = frozenset({"yes", "no", "true", "false"})
_PICTURE = re.compile(r"\.png\b|\bfigures?\b|\bfig\.? ?[Q\d](?!\d?\.\d)|\b(?:images?|resistors) shown below\b", re.I)
_DECIMAL = re.compile(r"(\d+)\.(\d+)(?![\de])")
_INLINE = re.compile(r"\(([a-z])\):?\s+")
_ASKED_AFTER = re.compile(r"[\s,.;]*\b[Ww]hich\b.*\Z", re.DOTALL)
_DEFINED = re.compile(r"^def (\w+)", re.MULTILINE)
_INSTRUCTION = "Complete the following code"


def renamed(**columns: str) -> Reader:
    """A reader for rows whose only peculiarity is the names of their columns: common name to native name."""

    def read(row: RawRow) -> RawRow:
        return {**row, **{name: row.get(column) for name, column in columns.items()}}

    return read


def worked(**columns: str) -> Reader:
    r"""Rows whose gold is the last `\boxed{...}` of a worked solution, in the column named for `answer`."""
    rename = renamed(**columns)

    def read(row: RawRow) -> RawRow:
        row = rename(row)
        boxes = [declaration.text for declaration in declarations(str(row["answer"])) if declaration.form == "box"]
        return {**row, "answer": boxes[-1] if boxes else None}

    return read


def with_distractors(right: str, wrong: Sequence[str], *, question: str, topic: str = "") -> Reader:
    """Rows that hold the right option and the wrong ones in columns of their own (a column may hold a list)."""

    def read(row: RawRow) -> RawRow:
        others = [row[name] for name in wrong if row.get(name)]
        texts = [text for value in others for text in (value if isinstance(value, list) else [value])]
        options = [str(text).strip() for text in (row[right], *texts)] if row.get(right) else []
        asked = {"question": row[question], "topic": row.get(topic, "")}
        return {**row, **asked, "choices": options, "answer": options[0] if options else None}

    return read


def option_columns(names: Sequence[str], place: str, *, topic: str = "") -> Reader:
    """Rows with one column an option, and the right one by its place, counted from 0 (-1 is a hidden gold)."""

    def read(row: RawRow) -> RawRow:
        number = row.get(place)
        right = None if number == -1 else number
        return {**row, "choices": [row[name] for name in names], "answer": right, "topic": row.get(topic, "")}

    return read


def mmlu_redux(row: RawRow) -> RawRow:
    """Rows with a verdict of the annotators: only questions found sound are kept."""
    if row.get("error_type", "ok") != "ok":
        raise Unusable("flawed_question")
    return {**row, "topic": row.get("config", "")}


def truthfulqa(row: RawRow) -> RawRow:
    """Rows with `mc1_targets`, in which the first option is always the right one."""
    targets = row["mc1_targets"]
    right = [text for text, label in zip(targets["choices"], targets["labels"], strict=True) if label]
    return {**row, "choices": list(targets["choices"]), "answer": right}


def chembench(row: RawRow) -> RawRow:
    """Rows with `examples`: one question whose options carry scores; several right options are not a choice of one."""
    example = row["examples"][0]
    scores = example.get("target_scores")
    scores = json.loads(scores) if isinstance(scores, str) else scores
    if not scores:
        raise Unusable("no_options")
    right = [text for text, score in scores.items() if score]
    if len(right) != 1:
        raise Unusable("several_right_options")
    return {
        **row,
        "question": example["input"],
        "choices": list(scores),
        "answer": right[0],
        "topic": row.get("config", ""),
    }


def protocols(row: RawRow) -> RawRow:
    """Rows of LAB-Bench: what a question is about (a protocol) stands before it."""
    text = with_distractors("ideal", ("distractors",), question="question", topic="config")(row)
    return {**text, "question": f"{row['protocol']}\n\n{row['question']}"} if row.get("protocol") else text


def popqa(row: RawRow) -> RawRow:
    """Rows with all names of the answer as a JSON list (or with one name as it is)."""
    names = row.get("possible_answers", row.get("output"))
    with suppress(ValueError):  # one name
        names = json.loads(names) if isinstance(names, str) else names
    question = row.get("question", row.get("input"))
    return {**row, "question": question, "answer": names, "topic": row.get("prop", ""), "kind": "text"}


def bbh(row: RawRow) -> RawRow:
    """Rows of BIG-Bench Hard: lettered options, listed labels, a yes or no, a number, or a text."""
    text, gold = row["input"].strip(), row.get("output", row.get("target"))
    topic = row.get("domain", row.get("config", ""))
    common = {**row, "question": text, "answer": gold, "topic": topic}
    if gold is None:
        return common
    head, _, tail = text.partition("\nOptions:\n")
    if lettered := dict(_LETTERED.findall(tail)):
        return {**common, "question": head, "choices": lettered, "answer": gold.strip("()"), "kind": "choice"}
    if labels := _DASHED.findall(tail):
        return {**common, "kind": "exact", "chance": 1 / len(labels)}
    if gold.casefold() in _TWO_SIDED:
        return {**common, "kind": "exact", "chance": 0.5}
    number = re.fullmatch(r"-?\d+", gold)
    return {**common, "kind": "number" if number else "exact"}


def theoremqa(row: RawRow) -> RawRow:
    """Rows of TheoremQA, whose kind of answer stands in the row; those about a picture that is not there are out."""
    text = row.get("input", row.get("Question"))
    gold, kind = row.get("output", row.get("Answer")), row.get("answer_type", row.get("Answer_type"))
    if row.get("Picture") is not None or _PICTURE.search(text):
        raise Unusable("needs_picture")
    common = {**row, "question": text, "answer": gold, "topic": kind}
    if kind == "bool":
        return {**common, "kind": "exact", "chance": 0.5}
    if kind == "option":
        question, options = inline_options(text)
        return {
            **common,
            "question": question,
            "choices": options,
            "answer": str(gold).strip("()").upper(),
            "kind": "choice",
        }
    if kind == "integer":
        return {**common, "kind": "number"}
    return {**common, "kind": "expression", "tolerance": None if "integer" in str(kind) else rounding(str(gold))}


def rounding(gold: str) -> float:
    """Relative tolerance of a rounded decimal, or list of them: 1%, or half a unit of the last digit where that is more.

    Digits count from the second on: `2.0` may be an exact 2, and half of a single digit is no tolerance but a guess.
    """
    tolerance = ROUNDED
    for whole, places in _DECIMAL.findall(gold):
        places = places.rstrip("0")
        value = float(f"{whole}.{places}")
        if value and len((whole + places).strip("0")) > 1:
            tolerance = max(tolerance, 0.5 * 10 ** -len(places) / value)
    return tolerance


def inline_options(text: str) -> tuple[str, dict[str, str]]:
    """A question with options `(a) ... (b) ...` in its sentence, taken apart. Raises `Unusable` when there are none."""
    marks: list[re.Match[str]] = []
    for mark in _INLINE.finditer(text):
        if mark[1] == chr(ord("a") + len(marks)):
            marks.append(mark)
    if len(marks) < 2:
        raise Unusable("no_options")
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    parts = [text[mark.end() : end] for mark, end in zip(marks, ends, strict=True)]
    asked = _ASKED_AFTER.search(parts[-1])
    parts[-1] = parts[-1][: asked.start()] if asked else parts[-1]
    question = f"{text[: marks[0].start()].strip()} {asked[0].strip(' ,.;') if asked else ''}".strip()
    return question, {
        mark[1].upper(): part.strip().rstrip(".;,").strip() for mark, part in zip(marks, parts, strict=True)
    }


def humaneval(row: RawRow) -> RawRow:
    """Rows of HumanEval: a signature with a docstring to complete; what stands before the last function is given."""
    code = row.get("prompt", row.get("input", "")).removeprefix(_INSTRUCTION).strip("\n")
    names = _DEFINED.findall(code)
    entry = row.get("entry_point") or (names[-1] if names else None)
    question = f"{_INSTRUCTION}.\n\n{code}"
    body = row.get("canonical_solution")
    solution = None if body is None else f"{code}\n{body}"
    return _program(row, question, entry, row.get("test"), prompt=code, answer=solution)


def mbpp(row: RawRow) -> RawRow:
    """Rows of MBPP: a task in words, and assertions that name the function."""
    asserts = row.get("test_list") or []
    text = row.get("input") or row.get("text") or row.get("prompt") or ""
    first = asserts[0] if asserts else text.rpartition("pass this test case:")[2]
    question = text if not asserts else f"{text}\nYour code should pass this test:\n{first}"
    tests = "\n".join(asserts) if asserts else row.get("test")
    setup = "\n".join(filter(None, (row.get("test_setup_code"), *row.get("test_imports", ()))))
    return _program(row, question, tested_function(first), tests, setup=setup or None, answer=row.get("code"))


def _program(row: RawRow, question: str, entry: str | None, tests: str | None, **rest: Any) -> RawRow:
    if not entry or not tests:
        raise Unusable("no_tests")
    given = {"prompt": None, "setup": None, **rest}
    return {**row, "question": question, "kind": "code", "tests": tests, "entry_point": entry, **given}


def tested_function(assertion: str) -> str | None:
    """The function that an assertion calls, outermost first; a built-in one only where there is no other."""
    try:
        tree = syntax_tree(assertion.strip())
    except (SyntaxError, ValueError):
        return None
    calls = [node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    return next((name for name in calls if not hasattr(builtins, name)), calls[0] if calls else None)
