"""The README is true: its snippets run in the order in which a reader meets them, its picture and figures are those on file.

Every fenced block is run or checked: Python in one namespace, YAML and named Python written to the file that their first
line names, `collabsim` lines as processes, `make` lines against the Makefile. A block of any other kind fails the test.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMAND = Path(sys.executable).with_name("collabsim")
NAMED = re.compile(r"# (\S+\.(?:py|yaml))\n")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


class Block(NamedTuple):
    language: str
    text: str
    line: int


def blocks(markdown: str) -> list[Block]:
    found = re.finditer(r"^```(\w*)\n(.*?)^```$", markdown, re.MULTILINE | re.DOTALL)
    return [Block(match[1], match[2], markdown[: match.start()].count("\n") + 1) for match in found]


def of(language: str) -> list[Block]:
    return [block for block in blocks(README) if block.language == language]


@pytest.fixture
def workspace(tmp_path, monkeypatch) -> Path:
    """A folder with the examples and nothing else of this project, in which the reader works."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("COLLABSIM_STORE", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    yield tmp_path
    sys.modules.pop("my_protocol", None)


def collabsim(arguments: list[str], folder: Path, typed: str | None = None, **variables: str) -> str:
    """Standard output of a command that must succeed."""
    environment = {**os.environ, **variables}
    done = subprocess.run(
        [str(COMMAND), *arguments], cwd=folder, env=environment, input=typed, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{arguments}: exit code {done.returncode}\n{done.stderr}"
    return done.stdout


def commands(block: Block) -> list[list[str]]:
    return [words for line in block.text.splitlines() if (words := shlex.split(line, comments=True))]


def run(block: Block, names: dict, folder: Path) -> None:
    """Do what a reader does with a block."""
    if named := NAMED.match(block.text):
        (folder / named[1]).write_text(block.text, encoding="utf-8")
    if block.language == "python":
        exec(compile(block.text, f"README.md, block at line {block.line}", "exec"), names)
    for words in commands(block) if block.language == "bash" else ():
        if words[0] == "collabsim":
            arguments, _, source = " ".join(words[1:]).partition(" < ")
            collabsim(arguments.split(), folder, (folder / source).read_text(encoding="utf-8") if source else None)


@pytest.mark.slow
def test_the_snippets_run_in_order_and_the_picture_is_what_they_draw(workspace):
    names: dict = {"__name__": "readme"}
    for block in blocks(README):
        run(block, names, workspace)
    assert 0 <= names["result"].values["shapley"]["m3"]["value"] <= 1
    drawn = (workspace / "quickstart.svg").read_text(encoding="utf-8")
    assert shown(drawn) == shown((ROOT / "benchmarks" / "results" / "quickstart.svg").read_text(encoding="utf-8"))


def shown(svg: str) -> list[str]:
    """The texts in a picture, without how long the sweep took."""
    texts = [re.sub(r"[\d.,]+&#160;s$", "", text) for text in re.findall(r">([^<>]+)</text>", svg)]
    assert len(texts) > 20
    return texts


def test_every_block_is_of_a_kind_that_is_run_or_checked():
    for block in blocks(README):
        assert block.language in ("python", "yaml", "bash", "toml", ""), f"line {block.line}: {block.language}"
        if block.language == "yaml":
            assert NAMED.match(block.text), f"line {block.line}: the first line names no file"
        for words in commands(block) if block.language == "bash" else ():
            assert words[0] in ("make", "collabsim"), f"line {block.line}: {words}"


def test_the_make_targets_exist():
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    named = [words[1] for block in of("bash") for words in commands(block) if words[0] == "make"]
    assert named == ["demo", "test"]
    assert set(named) <= set(targets)


def test_the_protocol_of_the_guide_is_the_one_in_the_examples():
    assert of("python")[0].text == (ROOT / "examples" / "my_protocol.py").read_text(encoding="utf-8")


def test_the_entry_point_of_the_guide_gives_the_protocol_its_name(workspace):
    (table,) = of("toml")
    points = tomllib.loads(table.text)["project"]["entry-points"]
    package = workspace / "readers_package-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: readers-package\nVersion: 1.0\n")
    lines = [f"[{group}]\n{name} = {value}\n" for group, names in points.items() for name, value in names.items()]
    (package / "entry_points.txt").write_text("".join(lines))
    shutil.copy(workspace / "examples" / "my_protocol.py", workspace)
    assert "self_check" in collabsim(["protocols"], workspace, PYTHONPATH=str(workspace))
    for block in of("yaml"):
        run(block, {}, workspace)
    by_name = ["sweep", "self_check.yaml", "--set", "protocol.name=self_check", "--dry-run", "--json"]
    assert '"coalition_runs": 160' in collabsim(by_name, workspace, PYTHONPATH=str(workspace))


def test_the_names_in_the_file_tree_exist():
    (tree,) = of("")
    names = re.findall(r"(?<![\w*])[a-z_]+(?:/|\.(?:py|yaml|json)\b)", tree.text)
    places = [ROOT, *(ROOT / folder for folder in ("collabsim", "graphs", "examples", "benchmarks"))]
    assert len(names) > 15
    assert [name for name in names if not any((place / name).exists() for place in places)] == []


def test_the_figures_are_those_that_the_benchmarks_recorded():
    section = README.partition("## Measured\n")[2].partition("\n## ")[0]
    bullets = re.findall(r"^- (.*?)(?=^- |\Z)", section, re.MULTILINE | re.DOTALL)
    assert bullets
    for bullet in bullets:
        (target,) = re.findall(r"\]\((benchmarks/results/[a-z_0-9]+\.md)\)", bullet)
        recorded = set(NUMBER.findall((ROOT / target).read_text(encoding="utf-8")))
        claimed = set(NUMBER.findall(bullet.partition("[")[0]))
        assert claimed, f"no figure in {bullet!r}"
        assert claimed <= recorded, f"{sorted(claimed - recorded)} of {bullet!r} are not in {target}"


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 380
