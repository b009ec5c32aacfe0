"""The rooms of the house: which folder may import which, how long a chain of modules gets, and how large a room.

A room is a folder of the three packages, with the flat files in it; the flat files of `collabsim/` are the vocabulary. Faces
(`__init__.py` and `__main__.py` of a package's root) stand above all rooms and are left out. Imports are read from the syntax
trees, so those in functions and under TYPE_CHECKING count. CONTRIBUTING.md holds the order, from the ground up.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import lru_cache
from pathlib import Path

import networkx as nx
from test_imports import FOLDERS, ROOT, imported

LONGEST_CHAIN = 20
LARGEST_SHARE = 0.20
FACES = {"collabsim", "collabsim.__main__", "collabsim.graphs", "collabsim.trainers"}


@lru_cache(maxsize=1)
def modules() -> dict[str, Path]:
    """Every module by its dotted name."""
    found = {}
    for folder, package in FOLDERS.items():
        for path in (ROOT / folder).rglob("*.py"):
            parts = [package, *path.relative_to(ROOT / folder).with_suffix("").parts]
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@lru_cache(maxsize=1)
def imports() -> nx.DiGraph:
    """An arrow from every module to each that it names."""
    known = modules()
    graph = nx.DiGraph()
    graph.add_nodes_from(known)
    for name, path in known.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        for target, _ in imported(ast.parse(path.read_text(encoding="utf-8")), package):
            owner = target if target in known else target.rpartition(".")[0]
            if owner in known and owner != name:
                graph.add_edge(name, owner)
    return graph


def room_of(module: str) -> str:
    """The folder that holds a module, as written in the guide."""
    return modules()[module].parent.relative_to(ROOT).as_posix()


def rooms() -> nx.DiGraph:
    """An arrow from every room to each that a module of it imports."""
    graph = nx.DiGraph()
    graph.add_nodes_from(room_of(name) for name in modules() if name not in FACES)
    for importer, owner in imports().edges:
        if not FACES & {importer, owner} and room_of(importer) != room_of(owner):
            graph.add_edge(room_of(importer), room_of(owner))
    return graph


def written_order() -> list[str]:
    """The rooms in the order of the guide, the ground first."""
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    order = re.search(r"## Order of the rooms\n.*?```\n(.*?)```", guide, re.DOTALL)
    assert order, "CONTRIBUTING.md has no section 'Order of the rooms' with a list in a code block"
    return [line.split()[0] for line in order[1].splitlines() if line.strip()]


def test_no_modules_import_each_other_in_a_circle():
    assert [sorted(circle) for circle in nx.strongly_connected_components(imports()) if len(circle) > 1] == []


def test_the_guide_orders_every_room():
    order = written_order()
    assert sorted(order) == sorted(rooms().nodes)
    assert len(order) == len(set(order))


def test_a_room_imports_only_what_stands_below_it():
    floor = {room: number for number, room in enumerate(written_order())}
    assert [f"{above} -> {below}" for above, below in rooms().edges if floor[above] <= floor[below]] == []


def test_the_longest_chain_of_modules_can_be_followed():
    chain = nx.dag_longest_path(imports())
    assert len(chain) <= LONGEST_CHAIN, " -> ".join(chain)


def test_no_room_holds_a_fifth_of_the_code():
    lines: Counter[str] = Counter()
    total = 0
    for path in modules().values():
        length = len(path.read_text(encoding="utf-8").splitlines())
        total += length
        lines.update({parent.as_posix(): length for parent in path.relative_to(ROOT).parents if parent != Path()})
    del lines["collabsim"]  # the house itself; its flat files are counted by what is not in a room
    assert {room: size for room, size in lines.items() if size >= LARGEST_SHARE * total} == {}


def test_no_two_files_share_a_name():
    names = Counter(path.name for path in modules().values() if not path.name.startswith("__"))
    assert [name for name, count in names.items() if count > 1] == []


def test_the_files_that_the_guide_points_to_exist():
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = guide.partition("## Where is ...\n")[2].partition("\n## ")[0]
    paths = re.findall(r"`([a-z_/]+/[a-z_.]+\.(?:py|json|toml))`", section)
    assert len(paths) > 30
    assert [path for path in paths if not (ROOT / path).exists()] == []
