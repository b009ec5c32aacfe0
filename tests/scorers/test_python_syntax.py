"""Python is parsed in several threads at once, where the interpreter's own parser may lose count."""

from __future__ import annotations

import ast
import gc
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from collabsim.scorers.reading import python_syntax as syntax
from collabsim.scorers.reading.python_syntax import syntax_tree

SOURCE = "\n".join(f"def f{number}(x):\n    return [x + {number} for x in range(x)]\n" for number in range(60))


def at_depth(depth: int, act: Callable[[], None]) -> None:
    if depth:
        at_depth(depth - 1, act)
    else:
        act()


@pytest.fixture
def handing_over() -> Iterator[None]:
    """Passes of the garbage collector are frequent, and each hands over to another thread."""

    def hand_over(*_: object) -> None:
        time.sleep(0)

    before = gc.get_threshold()
    gc.callbacks.append(hand_over)
    gc.set_threshold(50)
    yield
    gc.set_threshold(*before)
    gc.callbacks.remove(hand_over)


@pytest.mark.usefixtures("handing_over")
def test_threads_of_different_depths_parse_at_once():
    def parse_often() -> None:
        for _ in range(20):
            assert len(syntax_tree(SOURCE).body) == 60

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(at_depth, 3 * number, parse_often) for number in range(4)]:
            done.result()


def test_a_parse_that_lost_count_is_tried_again(monkeypatch):
    answers: list[Exception | ast.Module] = [SystemError("AST constructor recursion depth mismatch"), ast.parse("x")]

    def parse(source: str, mode: str) -> ast.Module:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(syntax, "ast", SimpleNamespace(parse=parse))
    assert len(syntax_tree("x").body) == 1
    assert answers == []


@pytest.mark.parametrize("source", ["def", "x = (", "a\0b"])
def test_what_is_no_python_is_refused_as_python_refuses_it(source):
    with pytest.raises((SyntaxError, ValueError)):
        syntax_tree(source)
