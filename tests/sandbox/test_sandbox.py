"""What a program and its tests can say to each other, what limits mean, and what a report tells."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest
from code_boxes import require_sandbox

from collabsim.sandbox.limits import Limits
from collabsim.sandbox.report import Examination, Report, Script
from collabsim.sandbox.worker_pool import Sandbox


@pytest.fixture(scope="module")
def sandbox():
    require_sandbox()
    with Sandbox(Limits(cpu_seconds=2, wall_seconds=6.0, memory_mb=512), workers=2) as made:
        yield made


def held(sandbox: Sandbox, program: str, tests: str, entry_point: str | None = "f", setup: str = "") -> Report:
    return sandbox.run(Examination(program, tests, entry_point, setup))


SAME = "def f(x):\n    return x"


@pytest.mark.parametrize(
    "value",
    [
        *(
            "None",
            "True",
            "0",
            "-1",
            "10**400",
            "2**53",
            "-2**63",
            "1.5",
            "float('inf')",
            "1e-320",
            "1+2j",
            "...",
            "''",
        ),
        *("'ä\\ud800\\n'", "b'\\x00'", "[]", "[1, [2, [3]]]", "()", "(1, (2,))", "{1, 2}", "frozenset([1])", "{}"),
        *("{1: 'a', (2, 3): [4]}", "{'t': 'int', 'v': '0x1'}", "range(1, 9, 2)", "Fraction(1, 3)", "Decimal('0.10')"),
        *(
            "Counter('aab')",
            "OrderedDict([(2, 1), (1, 2)])",
            "deque([1, 2])",
            "date(2020, 2, 29)",
            "timedelta(1, 2, 3)",
        ),
        *("datetime(2020, 1, 2, 3, 4, 5)", "bytearray(b'ab')", "int", "ValueError", "NotImplemented"),
    ],
)
def test_plain_values_arrive_as_they_are_with_their_types(sandbox, value):
    setup = "from collections import *\nfrom datetime import *\nfrom decimal import *\nfrom fractions import *"
    tests = f"x = {value}\ngot = f(x)\nassert got == x and type(got) is type(x), (got, x)"
    assert held(sandbox, SAME, tests, setup=setup).ending == "passed"


def test_not_a_number_arrives(sandbox):
    assert held(sandbox, SAME, "got = f(float('nan'))\nassert got != got").ending == "passed"


@pytest.mark.parametrize(
    ("program", "tests"),
    [
        ("def f(x):\n    x.sort()", "x = [2, 1]\nassert f(x) is None\nassert x == [1, 2]"),
        ("def f(x):\n    x.sort()\n    return x", "x = [2, 1]\nassert f(x) is x and x == [1, 2]"),
        (
            "def f(x, y):\n    x.update(y); y.clear()",
            "x, y = {1: 2}, {3: 4}\nf(x, y=y)\nassert (x, y) == ({1: 2, 3: 4}, {})",
        ),
        ("def f(x):\n    x.add(3)", "x = {1}\nf(x)\nassert x == {1, 3}"),
        ("def f(x):\n    x[0][0] = 5", "x = [[1]]\nf(x)\nassert x == [[5]]"),
        ("def f(x):\n    x[0] = 5", "x = bytearray(b'a')\nf(x)\nassert x == b'\\x05'"),
    ],
    ids=["list", "same object", "dictionaries", "set", "nested", "bytes"],
)
def test_changes_of_arguments_are_seen_by_the_tests(sandbox, program, tests):
    assert held(sandbox, program, tests).ending == "passed"


@pytest.mark.parametrize(
    ("program", "tests"),
    [
        ("def f(g):\n    return g(2)", "assert f(lambda x: x + 1) == 3"),
        ("def f(g):\n    return sorted([1, 2], key=g)", "assert f(lambda x: -x) == [2, 1]"),
        (
            "def f(g):\n    try:\n        g()\n    except KeyError:\n        return 1",
            "def g():\n    raise KeyError\nassert f(g) == 1",
        ),
        ("def f(x):\n    return lambda y: x + y", "assert f(1)(2) == 3"),
        ("def f(x):\n    yield from range(x)", "assert list(f(3)) == [0, 1, 2]"),
        ("def f(x):\n    return map(str, x)", "assert list(f([1])) == ['1']"),
        ("def f(x):\n    return sum(x)", "assert f(iter([1, 2])) == 3"),
        ("def f(x):\n    return {1: 2}.keys()", "assert sorted(f(1)) == [1] and len(f(1)) == 1 and 1 in f(1)"),
        (
            "from collections import namedtuple\nP = namedtuple('P', 'x y')\ndef f(x):\n    return P(x, 2)",
            "assert f(1).y == 2",
        ),
        (
            "class f:\n    def __init__(self, x):\n        self.x = x\n    def up(self):\n        self.x += 1",
            "c = f(1)\nc.up()\nassert c.x == 2",
        ),
        ("class f(list):\n    def size(self):\n        return len(self)", "assert f([1]) == [1]"),
        (
            "class f:\n    def __init__(self, x):\n        self.x = x\n    def __eq__(self, o):\n        return True",
            "assert f(1) == f(1)",
        ),
        ("import enum\nclass E(enum.IntEnum):\n    A = 1\ndef f(x):\n    return E.A", "assert f(0) == 1"),
    ],
    ids=lambda text: text.splitlines()[-1][:30],
)
def test_functions_iterators_and_objects_can_be_used_from_afar(sandbox, program, tests):
    report = held(sandbox, program, tests)
    assert (report.ending, report.reason) == ("passed", "")


def test_objects_of_the_tests_can_be_read_and_changed_by_the_program(sandbox):
    tests = "class Node:\n    def __init__(self, v):\n        self.v, self.next = v, None\n"
    tests += "n = Node(1)\nn.next = Node(2)\nassert f(n) == 3\nassert n.v == 9"
    program = "def f(n):\n    total = n.v + n.next.v\n    n.v = 9\n    return total"
    assert held(sandbox, program, tests).ending == "passed"


ASKS = """
def f(handed):
    try:
        handed._remote[0].request(OPERATION, *[handed, ARGUMENT][START:])
    except (AttributeError, PermissionError):
        return "no"
    return "yes"
"""


def asking(operation: str, argument: str, *, of_what_was_handed: bool) -> str:
    """A program that asks the tests' process for something and returns whether it got it."""
    filled = ASKS.replace("OPERATION", repr(operation)).replace("ARGUMENT", repr(argument))
    return filled.replace("START", "0" if of_what_was_handed else "1")


@pytest.mark.parametrize("attribute", ["__class__", "__init__", "_secret"])
def test_nothing_private_of_an_object_of_the_tests_can_be_reached(sandbox, attribute):
    tests = "class Node:\n    _secret = 7\n    open = 1\nassert f(Node()) == 'no'"
    program = asking("get", attribute, of_what_was_handed=True)
    assert held(sandbox, program, tests).reason == ""


def test_what_is_not_private_of_an_object_of_the_tests_can_be_reached(sandbox):
    tests = "class Node:\n    open = 1\nassert f(Node()) == 'yes'"
    assert held(sandbox, asking("get", "open", of_what_was_handed=True), tests).reason == ""


@pytest.mark.parametrize("operation", ["name", "ping", "load", "truth"])
def test_a_program_can_ask_nothing_that_was_not_handed_to_it(sandbox, operation):
    program = asking(operation, "tests", of_what_was_handed=False)
    assert held(sandbox, program, "assert f(lambda: 1) == 'no'").reason == ""


@pytest.mark.parametrize(
    ("raised", "caught"),
    [
        ("ValueError('no')", "ValueError"),
        ("KeyError(1)", "LookupError"),
        ("type('Own', (ValueError,), {})('x')", "ValueError"),
    ],
)
def test_exceptions_arrive_as_the_nearest_built_in_one(sandbox, raised, caught):
    tests = f"try:\n    f(1)\nexcept {caught}:\n    pass\nelse:\n    raise AssertionError"
    assert held(sandbox, f"def f(x):\n    raise {raised}", tests).ending == "passed"


def test_the_end_of_a_program_is_no_exception_that_a_test_could_expect(sandbox):
    tests = "try:\n    f(1)\nexcept Exception:\n    pass\nelse:\n    raise AssertionError"
    assert held(sandbox, "import os\ndef f(x):\n    os._exit(1)", tests).ending == "failed"


@pytest.mark.parametrize("name", ["StopIteration", "GeneratorExit", "SystemExit"])
def test_an_exception_that_steers_loops_does_not_end_the_loops_of_a_test(sandbox, name):
    tests = "def right(x):\n    assert f(x) == x\n    return True\nassert all(map(right, [1, 2, 3]))"
    assert held(sandbox, f"def f(x):\n    raise {name}", tests).ending == "failed"


def test_a_test_that_exits_has_not_passed(sandbox):
    assert held(sandbox, SAME, "import sys\nassert f(1) == 1\nsys.exit(0)").ending == "failed"


def test_names_that_tests_use_and_do_not_define_are_the_programs(sandbox):
    program = "LIMIT = 3\ndef f(x):\n    return x\ndef g(x):\n    return -x"
    assert held(sandbox, program, "assert g(1) == -1 and LIMIT == 3").ending == "passed"


def test_a_program_runs_with_a_fixed_hash_seed_and_generator(sandbox):
    program = "import random\ndef f(x):\n    return hash('a'), random.random()"
    reasons = {held(sandbox, program, "raise ValueError(str(f(0)))").reason for _ in range(3)}
    assert len(reasons) == 1


def test_a_program_sees_a_bare_environment(sandbox):
    os.environ["COLLABSIM_SECRET"] = "x"
    try:
        program = "import os, sys\ndef f(x):\n    return 'COLLABSIM_SECRET' in os.environ, sys.stdin.read()"
        with Sandbox(workers=1) as fresh:
            assert held(fresh, program, "assert f(0) == (False, '')").ending == "passed"
    finally:
        del os.environ["COLLABSIM_SECRET"]


def test_a_program_finds_an_empty_folder_to_write_in(sandbox):
    program = "import os\ndef f(x):\n    found = os.listdir('.')\n    open('left', 'w').write('x')\n"
    program += "    return found, open('left').read()"
    for _ in range(3):
        assert held(sandbox, program, "assert f(0) == ([], 'x')").ending == "passed"


@pytest.mark.parametrize(
    "statement",
    [
        "import numpy.linalg as n; n.norm",
        "import xml.dom.minidom",
        "import encodings.idna",
        "import sqlite3, ssl, lzma",
        "import zoneinfo; zoneinfo.ZoneInfo('Europe/Rome')",
    ],
)
def test_the_standard_library_and_numpy_can_be_imported(sandbox, statement):
    assert held(sandbox, f"def f(x):\n    {statement}\n    return x", "assert f(1) == 1").reason == ""


@pytest.mark.parametrize("package", ["pytest", "model_collaboration", "collabsim"])
def test_other_installed_packages_cannot(sandbox, package):
    report = held(sandbox, f"import {package}\n{SAME}", "assert f(1) == 1")
    assert report.reason == f"the program does not load: ModuleNotFoundError: No module named '{package}'"


def test_threads_and_event_loops_work(sandbox):
    program = "import asyncio, concurrent.futures as c\nasync def g(x):\n    await asyncio.sleep(0.01)\n    return x\n"
    program += "def f(x):\n    with c.ThreadPoolExecutor(4) as pool:\n        pooled = sum(pool.map(int, '12'))\n"
    program += "    return pooled + asyncio.run(g(x))"
    assert held(sandbox, program, "assert f(1) == 4").reason == ""


@pytest.mark.parametrize(
    ("program", "ended_by", "words"),
    [
        ("def f(x):\n    while True: pass", "cpu", "more than 1 s of processor time"),
        ("import time\ndef f(x):\n    time.sleep(60)", "wall", "longer than 1.5 s by the clock"),
        ("def f(x):\n    while True: print('x' * 999)", "output", "printed more than 16 KiB"),
        (
            "def f(x):\n    for i in range(9999): open(str(i), 'w').close()\n    import time; time.sleep(9)",
            "folder",
            "wrote more than",
        ),
    ],
    ids=["cpu", "wall", "output", "folder"],
)
def test_a_limit_is_named_in_the_report(program, ended_by, words):
    require_sandbox()
    limits = Limits(cpu_seconds=1, wall_seconds=1.5, output_kb=16, folder_entries=100)
    with Sandbox(limits, workers=1) as strict:
        report = held(strict, program, "f(1)")
    assert (report.ending, report.ended_by) == ("failed", ended_by)
    assert words in report.reason


def test_memory_and_file_size_end_in_exceptions_that_are_named(sandbox):
    assert held(sandbox, "def f(x):\n    return 'x' * 10**10", "f(1)").reason == "MemoryError"
    assert "File too large" in held(sandbox, "def f(x):\n    open('a', 'w').write('x' * 10**8)", "f(1)").reason


def test_a_script_gets_its_input_and_its_streams_are_kept_apart(sandbox):
    program = "import sys\nprint(input())\nsys.stderr.write('log')\nsys.stdout.buffer.write(b'\\xff')"
    report = sandbox.run(Script(program, "hello\n"))
    assert (report.ending, sorted(report.output), report.errors) == ("passed", sorted(b"hello\n\xff"), b"log")


def test_a_script_with_much_input_and_output_works(sandbox):
    report = sandbox.run(Script("import sys\nsys.stdout.write(sys.stdin.read().upper())", "abc\n" * 50_000))
    assert report.output == b"ABC\n" * 50_000


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("1 / 0", "exit code 1: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit('bad')", "exit code 1: bad"),
        ("import os\nos.abort()", "crashed: SIGABRT"),
    ],
)
def test_a_script_that_fails_says_how(sandbox, program, reason):
    report = sandbox.run(Script(program))
    assert (report.ending, report.reason) == ("failed", reason)


async def test_programs_can_be_awaited(sandbox):
    reports = await asyncio.gather(*(sandbox.arun(Examination(SAME, f"assert f({n}) == {n}", "f")) for n in range(6)))
    assert [report.ending for report in reports] == ["passed"] * 6


def test_many_programs_keep_their_order(sandbox):
    works = [Examination(SAME, f"assert f({n % 2}) == 1", "f") for n in range(8)]
    assert [report.ending for report in sandbox.run_all(works)] == ["failed", "passed"] * 4


def test_more_threads_than_workers_wait_for_their_turn(sandbox):
    reports: list[Report] = []
    threads = [
        threading.Thread(target=lambda: reports.append(held(sandbox, SAME, "assert f(1) == 1"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [report.ending for report in reports] == ["passed"] * 8
    assert len(sandbox._free) <= sandbox.workers


def test_a_private_folder_for_temporary_files_is_no_obstacle(tmp_path, monkeypatch):
    tmp_path.chmod(0o700)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    program = "def f(x):\n    open('a', 'w').write('x')\n    return open('a').read()"
    for namespaces in (True, False):
        with Sandbox(workers=1, namespaces=namespaces) as private:
            assert held(private, program, "assert f(0) == 'x'").reason == ""
