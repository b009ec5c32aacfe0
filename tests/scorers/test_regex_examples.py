r"""Every regex of the scorers stands beside an example of what it is for, and matches it.

The example is in backticks (in quotes where it holds backticks itself): first of the docstring below a regex at module level,
or of the comment above one inside a function or a table.
"""

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "collabsim" / "scorers"
EXAMPLE = re.compile(r"\"([^\"]+)\"|`([^`]+)`")


def is_regex(node):
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile"


def example_in(text):
    shown = EXAMPLE.search(text or "")
    return shown and (shown[1] or shown[2])


def documented(tree):
    """Regexes assigned at module level: their nodes, names, and the docstrings below."""
    for node, below in zip(tree.body, [*tree.body[1:], ast.Pass()], strict=True):
        if isinstance(node, ast.Assign) and is_regex(node.value):
            is_text = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
            yield node.value, ast.unparse(node.targets[0]), below.value.value if is_text else ""


def faults(source, patterns):
    """Names or lines of regexes without an example, or that do not match theirs; `patterns` holds those with a name."""
    tree, lines = ast.parse(source), source.splitlines()
    named = {id(node): (name, text) for node, name, text in documented(tree)}
    for node in filter(is_regex, ast.walk(tree)):
        name, text = named.get(id(node), ("", ""))
        above = lines[node.lineno - 2].strip()
        example = example_in(text) if name else example_in(above) if above.startswith("#") else None
        if example is None:
            yield f"{name or node.lineno}: no example"
        elif name and not patterns[name].search(example):
            yield f"{name}: {patterns[name].pattern} does not match {example!r}"


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_every_regex_has_an_example_and_matches_it(path):
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    assert list(faults(path.read_text(encoding="utf-8"), vars(module))) == []


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("A = re.compile('a')", "A: no example"),
        ("A = re.compile('a')\n'''Letters.'''", "A: no example"),
        ("A = re.compile('a')\n'''A letter: `b`.'''", "A: a does not match 'b'"),
        ("def f():\n    # Letters.\n    return re.compile('a')", "3: no example"),
    ],
)
def test_the_reader_sees_a_regex_without_an_example_that_it_matches(source, fault):
    assert list(faults(source, {"A": re.compile("a")})) == [fault]


def test_the_reader_takes_examples_in_docstrings_and_comments():
    source = "A = re.compile('a')\n'''A letter: `a`.'''\nTABLE = [\n    # Another: `b`.\n    re.compile('b'),\n]"
    assert list(faults(source, {"A": re.compile("a")})) == []
