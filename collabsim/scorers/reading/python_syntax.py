"""The syntax tree of a piece of Python, from any thread.

In: source text. Out: its tree. Left out on purpose: what the tree means (`code/python_source.py`).

CPython counts the depth of a tree under construction in one place per interpreter, and a pass of the garbage collector
can hand over to another thread in the middle: before 3.11.8 and 3.12.1, two threads that parse at once may then raise
`SystemError: AST constructor recursion depth mismatch` for sound source (python/cpython#106905).
"""

from __future__ import annotations

import ast
import threading
from typing import Literal, overload

_ONE_AT_A_TIME = threading.RLock()  # re-entrant: a finalizer that runs in the middle of a parse may parse as well
_ATTEMPTS = 5


@overload
def syntax_tree(source: str) -> ast.Module: ...
@overload
def syntax_tree(source: str, mode: Literal["eval"]) -> ast.Expression: ...
def syntax_tree(source: str, mode: Literal["exec", "eval"] = "exec") -> ast.AST:
    """The tree of `source`, as `ast.parse` gives it in `mode` (`exec`: a module; `eval`: an expression).

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: what `ast.parse` raises of text that is no Python.
        SystemError: other libraries parsed in other threads each of the five times that it was tried.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return _parse(source, mode)
        except SystemError:
            continue
    return _parse(source, mode)


def _parse(source: str, mode: Literal["exec", "eval"]) -> ast.AST:
    with _ONE_AT_A_TIME:
        return ast.parse(source, mode=mode)
