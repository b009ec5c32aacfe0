"""The process of the tests: trusted, and confined like the program, which it knows only through calls.

In: an examination (program, tests, a nonce) over a stream from the user's process. Out: the nonce with a verdict, over the
same stream, which the program's process does not hold. Names that the tests use and nobody defines (helpers of the program)
are asked of the program. Left out on purpose: scoring; that is the scorer's.
"""

from __future__ import annotations

import ast
import builtins
import random
import sys
import traceback
import types
from typing import Any

from .peer import Peer
from .wire import Frames, Gone, Unreadable

MODULE = "tests"
LONGEST_REASON = 300


def examine(line: int, program_line: int) -> None:
    """Hold one examination. `line` leads to the user's process, `program_line` to the program's."""
    frames = Frames(line)
    paper = frames.receive()
    random.setstate(random.Random(0).getstate())
    module = sys.modules[MODULE] = types.ModuleType(MODULE)
    broken = False
    try:
        tree = ast.parse(paper["tests"], f"{MODULE}.py")
        exec(compile(paper["setup"], "setup.py", "exec", dont_inherit=True), module.__dict__)
    except Exception as error:
        broken, reason = True, f"the tests cannot be set up: {_said(error)}"
    else:
        reason = _held(tree, paper, Peer(Frames(program_line), guarded=True, names=module.__dict__))
    frames.send({"nonce": paper["nonce"], "passed": not reason, "broken": broken, "reason": reason})


def _held(tree: ast.Module, paper: dict[str, Any], peer: Peer) -> str:
    """Why the program failed; empty when it passed."""
    try:
        for source in (paper["setup"], paper["program"]):
            peer.request("load", source)
    except Gone:
        return "the program ended while it was loaded"
    except Exception as error:
        return f"the program does not load: {_said(error)}"
    try:
        return _tested(tree, paper["entry_point"], peer, sys.modules[MODULE].__dict__)
    except Gone:
        return "the program ended before the tests did"
    except BaseException as error:  # also SystemExit: a test that exits has not passed
        return _described(error, paper["tests"])


def _tested(tree: ast.Module, entry_point: str | None, peer: Peer, names: dict[str, Any]) -> str:
    """Why the program failed; empty when it passed. Raises what the tests raise."""
    for name in sorted(_unbound(tree, names) - {"candidate"}):
        try:
            names[name] = peer.request("name", name)
        except NameError:
            continue  # the tests will say so if they come to it
    if entry_point:
        try:
            names["candidate"] = names[entry_point] = peer.request("name", entry_point)
        except NameError:
            return f"the program does not define {entry_point}"
    exec(compile(tree, f"{MODULE}.py", "exec", dont_inherit=True), names)
    if _has_uncalled_check(tree):
        names["check"](names["candidate"])
    # A program that has ended cannot have passed, even if the tests took its end for an exception they expected.
    return "" if peer.request("ping") == "pong" else "the program stopped answering"


def _unbound(tree: ast.Module, names: dict[str, Any]) -> set[str]:
    """Names that the tests use and that neither they, nor the setup, nor Python define."""
    used: set[str] = set()
    bound = set(names) | set(vars(builtins))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound.add(node.name)
    return used - bound


def _has_uncalled_check(tree: ast.Module) -> bool:
    """Whether the tests are a function `check(candidate)` that is left to the harness to call (as in HumanEval)."""
    defined = any(isinstance(node, ast.FunctionDef) and node.name == "check" for node in tree.body)
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return defined and not any(isinstance(called, ast.Name) and called.id == "check" for called in calls)


def _described(error: BaseException, tests: str) -> str:
    """The failure in one line, with the assertion that failed."""
    if isinstance(error, AssertionError) and not getattr(error, "__notes__", None):
        walked = traceback.walk_tb(error.__traceback__)
        numbers = [number for frame, number in walked if frame.f_code.co_filename == f"{MODULE}.py"]
        lines = tests.splitlines()
        if numbers and numbers[-1] <= len(lines):
            return _short(f"AssertionError: {lines[numbers[-1] - 1].strip()}")
    if isinstance(error, Unreadable):
        return _short(f"unusable answer: {error}")
    return _said(error)


def _said(error: BaseException) -> str:
    """Type and message; the type is the one the program raised where it has a name of its own."""
    name = next(iter(getattr(error, "__notes__", [])), type(error).__name__)
    text = error.args[0] if len(error.args) == 1 and isinstance(error.args[0], str) else str(error)  # KeyError quotes
    return _short(f"{name}: {text}" if text else name)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_REASON else text[: LONGEST_REASON - 1] + "…"
