"""Facts about a piece of Python, without running it.

In: source text. Out: whether it parses, what it defines and needs, and its canonical form. Left out on purpose: types, flow.
"""

from __future__ import annotations

import ast
import builtins
import re
import textwrap
import warnings
from functools import lru_cache

from collabsim.scorers.reading.python_syntax import syntax_tree

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_BUILTINS = frozenset(vars(builtins))


@lru_cache(maxsize=4096)
def parsed(source: str) -> ast.Module | None:
    """The syntax tree of `source`; None when it is no Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes are the program's business
            return syntax_tree(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def fault_line(source: str) -> int | None:
    """The line (from 1) at which `source` stops being Python; None when it parses."""
    if parsed(source) is not None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            syntax_tree(source)
    except SyntaxError as error:
        return error.lineno or 1
    except (ValueError, RecursionError, MemoryError):
        return 1
    return None


def longest_sound(source: str) -> str:
    """A long beginning of `source`, by lines, that parses: up to what makes it unsound. Empty when there is none."""
    lines = source.splitlines()
    end = len(lines)
    while end > 0:
        beginning = "\n".join(lines[:end])
        fault = fault_line(beginning)
        if fault is None:
            return beginning
        end = min(end - 1, fault - 1)
    return ""


def defined(source: str) -> frozenset[str]:
    """Names that the top level of `source` binds, in `if` and `try` too."""
    tree = parsed(source)
    return frozenset() if tree is None else frozenset(_bound(tree.body))


def _bound(body: list[ast.stmt]) -> set[str]:
    names: set[str] = set()
    for statement in body:
        if isinstance(statement, Definition):
            names.add(statement.name)
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}
        else:
            names |= {node.id for node in _without_inner(statement) if isinstance(node, ast.Name) and _is_store(node)}
            for field in ("body", "orelse", "finalbody"):
                names |= _bound(getattr(statement, field, []))
            for handler in getattr(statement, "handlers", []):
                names |= _bound(handler.body)
    return names


def _without_inner(statement: ast.stmt) -> list[ast.AST]:
    """The nodes of a statement outside any function or class."""
    nodes: list[ast.AST] = []
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        waiting += [child for child in ast.iter_child_nodes(node) if not isinstance(child, Definition | ast.Lambda)]
    return nodes


def _is_store(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def needed(source: str) -> frozenset[str]:
    """Names that `source` uses and nothing in it, nor Python itself, binds."""
    tree = parsed(source)
    if tree is None:
        return frozenset()
    used: set[str] = set()
    bound = set(_BUILTINS) | set(defined(source))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (bound if _is_store(node) else used).add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, Definition):
            bound.add(node.name)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound.add(node.name)
    return frozenset(used - bound)


def is_stub(source: str, name: str) -> bool:
    """Whether the last definition of `name` in `source` is a signature without a body."""
    tree = parsed(source)
    functions = [node for node in tree.body if isinstance(node, Definition) and node.name == name] if tree else []
    return bool(functions) and all(_says_nothing(statement) for statement in functions[-1].body)


def _says_nothing(statement: ast.stmt) -> bool:
    """Whether a statement is `pass`, `...`, a string, or `raise NotImplementedError`."""
    if isinstance(statement, ast.Raise):
        raised = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
        return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"
    return isinstance(statement, ast.Pass) or _is_constant(statement)


def _is_constant(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


@lru_cache(maxsize=4096)
def canonical(source: str) -> str:
    """`source` without comments, docstrings and layout; its plain text when it does not parse."""
    tree = parsed(source)
    if tree is None:
        return source.strip()
    copied = syntax_tree(source)
    for node in ast.walk(copied):
        if isinstance(node, Definition | ast.Module):
            node.body = [part for part in node.body if not _is_string(part)] or [ast.Pass()]
    try:
        return ast.unparse(ast.fix_missing_locations(copied))
    except (RecursionError, ValueError):
        return source.strip()


def _is_string(statement: ast.stmt) -> bool:
    return _is_constant(statement) and isinstance(statement.value.value, str)  # type: ignore[attr-defined]


def preamble(prompt: str, entry_point: str | None) -> str:
    """What a prompt brings along for any answer: its imports, and its helpers beside the asked function."""
    tree = parsed(code_of_prompt(prompt))
    if tree is None:
        return ""
    kept = [
        statement
        for statement in tree.body
        if isinstance(statement, ast.Import | ast.ImportFrom | ast.Assign | Definition)
        and getattr(statement, "name", None) != entry_point
    ]
    return "\n".join(map(ast.unparse, kept))


_PROMPT_START = re.compile(r"(?m)^(?:from\s+\S+\s+import\b|import\s+\w|(?:async\s+)?def\s|class\s|@\w)")
"""The first line of a prompt's code: `def f(x):`."""


@lru_cache(maxsize=4096)
def code_of_prompt(prompt: str) -> str:
    """The code of a prompt that ends in an open function, made complete; words around it are left out. Else empty."""
    opened = open_prompt(prompt)
    return next((opened + body for body in ("", "    pass\n") if opened and parsed(opened + body) is not None), "")


@lru_cache(maxsize=4096)
def open_prompt(prompt: str) -> str:
    """The code of a prompt as it stands, up to the end of its last function, for a body to follow. Else empty."""
    start = _PROMPT_START.search(prompt)
    lines = prompt[start.start() :].splitlines() if start else []
    end = len(lines)
    while end > 0:
        beginning = "\n".join(lines[:end]).rstrip() + "\n"
        for body in ("", "    pass\n"):
            tree = parsed(beginning + body)
            if tree is not None:
                return _up_to_last_definition(beginning, tree)
        end = min(end - 1, (fault_line(beginning) or end) - 1)
    return ""


def _up_to_last_definition(source: str, tree: ast.Module) -> str:
    ends = [statement.end_lineno or 0 for statement in tree.body if isinstance(statement, Definition)]
    return "\n".join(source.splitlines()[: ends[-1]]) + "\n" if ends else ""


def asked_name(prompt: str) -> str | None:
    """The function that a prompt leaves open: the last one that it defines; None when it defines none."""
    tree = parsed(code_of_prompt(prompt))
    names = [statement.name for statement in tree.body if isinstance(statement, Definition)] if tree else []
    return names[-1] if names else None


def name_under_test(tests: str, *, even_built_in: bool) -> str | None:
    """The name that assertions call: the first that is neither a built-in nor defined by the tests. None when unclear.

    `even_built_in` falls back to the first call of all, for functions that are asked for under such a name.
    """
    tree = parsed(textwrap.dedent(tests))
    if tree is None:
        return None
    asserted = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    calls = [call.func for statement in asserted for call in ast.walk(statement) if isinstance(call, ast.Call)]
    called = [function.id for function in calls if isinstance(function, ast.Name)]
    known = defined(tests) | _BUILTINS | {"candidate"}
    return next((name for name in called if name not in known), called[0] if called and even_built_in else None)
