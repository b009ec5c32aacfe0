"""Which module may import which, what may not be called, and what importing collabsim may cost.

Imports are read from the syntax trees, so those in functions and under TYPE_CHECKING count too. Names in strings (entry
points, `import_module`) are the sanctioned way from collabsim to protocols and trainers, and are not read.
"""

from __future__ import annotations

import ast
import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {"collabsim": "collabsim", "graphs": "collabsim.graphs", "trainers": "collabsim.trainers"}
HEAVY = [
    *("datasets", "langchain_core", "langchain_openai", "langgraph", "matplotlib", "networkx", "numpy", "openai"),
    *("pandas", "reasoning_gym", "scipy", "shapiq", "sklearn", "torch", "transformers", "vllm"),
]
SEEDED_RANDOM = {"Random", "SystemRandom"}
SEEDED_NUMPY = {"default_rng", "Generator", "SeedSequence", "BitGenerator", "PCG64", "PCG64DXSM", "Philox", "SFC64"}
# Around a library that draws from the global generators: seed them, and put their states back.
FENCE_RANDOM = {"seed", "getstate", "setstate"}
FENCE_NUMPY = {"seed", "get_state", "set_state"}


def python_files() -> list[tuple[Path, str]]:
    """Every source file with the dotted name of the package that holds it."""
    return [
        (path, ".".join([package, *path.relative_to(ROOT / folder).parent.parts]))
        for folder, package in FOLDERS.items()
        for path in sorted((ROOT / folder).rglob("*.py"))
    ]


FILES = [pytest.param(path, package, id=str(path.relative_to(ROOT))) for path, package in python_files()]


def imported(tree: ast.AST, package: str) -> Iterator[tuple[str, bool]]:
    """Absolute names of all that is imported, each with whether it was written relatively."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, False) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = [*parents, *([node.module] if node.module else [])]
            yield from ((".".join([*base, alias.name]), node.level > 0) for alias in node.names)


def within(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def forbidden_imports(source: str, package: str) -> list[str]:
    """Imports against the arrows: core to graphs or trainers, these to each other, siblings by an absolute name."""
    graphs, trainers = ("graphs", "collabsim.graphs"), ("trainers", "collabsim.trainers")
    faults = []
    for name, relative in imported(ast.parse(source), package):
        if within(package, "collabsim.graphs"):
            wrong = within(name, *trainers) or (within(name, *graphs) and not relative)
        elif within(package, "collabsim.trainers"):
            wrong = within(name, *graphs) or (within(name, *trainers) and not relative)
        else:
            wrong = within(name, *graphs, *trainers)
        if wrong:
            faults.append(name)
    return faults


def allowed_names(source: str) -> dict[str, set[str]]:
    """What may be used of each module with global generators; seeding them only where their states are put back."""
    plain = SEEDED_RANDOM | (FENCE_RANDOM if "random.setstate(" in source else set())
    array = SEEDED_NUMPY | (FENCE_NUMPY if "random.set_state(" in source else set())
    return {"random": plain, "np.random": array, "numpy.random": array}


def unseeded_calls(source: str) -> list[str]:
    """Uses of `hash()` outside `__hash__`, and of the global generators of `random` and `numpy.random`."""
    tree, allowed = ast.parse(source), allowed_names(source)
    dunders = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "__hash__")
    in_dunder_hash = {id(node) for function in dunders for node in ast.walk(function)}
    used: list[tuple[str, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            used.append((ast.unparse(node.value), node.attr))
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            used += [(node.module or "", alias.name) for alias in node.names]
    faults = [f"{owner}.{name}" for owner, name in used if owner in allowed and name not in allowed[owner]]
    hashes = (node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "hash")
    return faults + ["hash" for node in hashes if id(node) not in in_dunder_hash]


@pytest.mark.parametrize(
    ("source", "package"),
    [
        ("import collabsim.graphs.debate", "collabsim"),
        ("from collabsim import graphs", "collabsim.cli"),
        ("from graphs import debate", "collabsim"),
        ("from . import graphs", "collabsim"),
        ("from ..trainers import crl", "collabsim.cli"),
        ("def f():\n    import trainers", "collabsim.store"),
        ("if TYPE_CHECKING:\n    from collabsim.trainers.policy.policy import Policy", "collabsim.models"),
        ("from collabsim.graphs.state import State", "collabsim.graphs"),
        ("import graphs.state", "collabsim.graphs"),
        ("from collabsim.trainers import crl", "collabsim.graphs"),
        ("from ..graphs import debate", "collabsim.trainers"),
    ],
)
def test_the_reader_sees_an_import_against_the_arrows(source, package):
    assert forbidden_imports(source, package)


@pytest.mark.parametrize(
    ("source", "package"),
    [
        ("from collabsim.nodes.state import State", "collabsim.graphs"),
        ("from .rounds import vote", "collabsim.graphs"),
        ("from . import rounds", "collabsim.trainers"),
        ("import graphslib, trainers_of_mine", "collabsim"),
        ("import_module('collabsim.graphs.debate')", "collabsim"),
    ],
)
def test_the_reader_lets_an_import_along_the_arrows_pass(source, package):
    assert forbidden_imports(source, package) == []


@pytest.mark.parametrize(
    "source",
    [
        "seed = hash('a')",
        "key = map(hash, items)",
        "import random\nrandom.shuffle(x)",
        "import random\nfrom_list(random.choice)",
        "from random import sample",
        "import numpy as np\nnp.random.seed(0)",
        "import numpy as np\nnp.random.seed(0)\nnp.random.set_state(state)\nnp.random.rand()",
        "from numpy.random import rand",
    ],
)
def test_the_reader_sees_randomness_without_a_seed(source):
    assert unseeded_calls(source)


@pytest.mark.parametrize(
    "source",
    [
        "import random\nrng = random.Random(seed)\nrng.shuffle(x)",
        "import numpy as np\nnp.random.default_rng(seed).random()",
        "import random\nstate = random.getstate()\nrandom.seed(1)\nforeign()\nrandom.setstate(state)",
        "class A:\n    def __hash__(self):\n        return hash(self.mask)",
        "run.hash(x)",
    ],
)
def test_the_reader_lets_seeded_randomness_pass(source):
    assert unseeded_calls(source) == []


@pytest.mark.parametrize(("path", "package"), FILES)
def test_imports_follow_the_arrows(path, package):
    assert forbidden_imports(path.read_text(encoding="utf-8"), package) == []


@pytest.mark.parametrize(("path", "package"), FILES)
def test_seeds_come_from_content_only(path, package):
    assert unseeded_calls(path.read_text(encoding="utf-8")) == []


def heavy_modules_after(statement: str) -> list[str]:
    """Which of the heavy modules a fresh interpreter holds after `statement`."""
    code = f"import json, sys\n{statement}\nprint(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT.parent)
    loaded: list[str] = json.loads(done.stdout.splitlines()[-1])
    return loaded


def test_the_check_for_heavy_modules_sees_one():
    assert heavy_modules_after("import numpy") == ["numpy"]


@pytest.mark.parametrize("module", ["collabsim", "collabsim.cli", "collabsim.cli.app", "collabsim.errors"])
def test_importing_the_package_or_the_command_line_loads_nothing_heavy(module):
    assert heavy_modules_after(f"import {module}") == []


def test_the_help_of_the_command_line_loads_nothing_heavy():
    show_help = """
from collabsim.cli import main
sys.argv = ["collabsim", "--help"]
try:
    main()
except SystemExit:
    pass
"""
    assert heavy_modules_after(show_help) == []


def test_help_is_there_in_under_half_a_second():
    command = [str(Path(sys.executable).with_name("collabsim")), "--help"]
    seconds = []
    for _ in range(4):  # the first one may still write byte code
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT.parent)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        # Processor time is the wall time of an idle machine; the wall clock also counts the tests run beside this one.
        seconds.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
        assert "sweep" in done.stdout
    assert min(seconds) < 0.5
