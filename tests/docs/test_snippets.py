"""Every code block of the documentation runs, in the order in which a reader meets them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from engines import requires
from packaging.requirements import Requirement
from pages import LANGUAGES, PAGES, PYPROJECT, ROOT, Block, blocks, commands, of, read

PAGES_WITH_CODE = [page for page in PAGES if blocks(read(page)) and page.name not in ("README.md", "training.md")]
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


class Reader:
    """Does what a reader of a page does with its blocks."""

    def __init__(self, folder: Path, collabsim) -> None:
        self.folder, self.collabsim = folder, collabsim
        self.names: dict = {"__name__": "page"}
        self.config = "examples/quickstart.yaml"
        """The whole config that pieces are laid over: the page's last one."""

    def follow(self, page: Path) -> None:
        for block in blocks(read(page)):
            self.run(block, page.name)

    def run(self, block: Block, page: str) -> None:
        if block.file:
            (self.folder / block.file).write_text(block.text, encoding="utf-8")
        if block.language == "python":
            exec(compile(block.text, f"{page}, block at line {block.line}", "exec"), self.names)
        elif block.language == "yaml":
            self.configure(block)
        for words in commands(block):
            if words[0] == "collabsim":
                self.command(words[1:])

    def configure(self, block: Block) -> None:
        """Take a whole config, or plan with a piece of one."""
        if block.file:
            self.config = block.file
            self.collabsim("sweep", block.file, "--dry-run")
            return
        whole = yaml.safe_load((self.folder / self.config).read_text(encoding="utf-8"))
        piece = yaml.safe_load(block.text)
        path = self.folder / "with_piece.yaml"
        path.write_text(yaml.safe_dump({**whole, **piece}, sort_keys=False), encoding="utf-8")
        self.collabsim("sweep", str(path), "--dry-run")
        self.check_sections(piece)

    def check_sections(self, piece: dict) -> None:
        """Sections that the commands of training read are checked as these commands do."""
        from collabsim.trainers.compare.matrix import read_matrix
        from collabsim.trainers.finetune.finetuning_settings import parse_finetune

        if "compare" in piece:
            assert read_matrix(self.folder / "with_piece.yaml").cells
        if "finetune" in piece:
            parse_finetune(piece["finetune"])

    def command(self, words: list[str]) -> str:
        typed = None
        if "<" in words:
            typed = (self.folder / words.pop()).read_bytes()
            words.remove("<")
        return self.collabsim(*words, typed=typed)


@pytest.fixture
def reader(workspace, collabsim) -> Reader:
    return Reader(workspace, collabsim)


@pytest.mark.parametrize("page", PAGES_WITH_CODE, ids=lambda page: page.stem)
def test_the_blocks_of_a_page_run_in_order(page, reader):
    reader.follow(page)


@pytest.mark.slow
@requires("torch", "transformers")
def test_the_blocks_of_the_training_guide_run_in_order(reader, my_model):
    reader.follow(ROOT / "docs" / "training.md")
    assert (reader.folder / "runs" / "train" / "policy" / "config.json").exists()


def test_every_page_is_followed():
    assert {"protocols", "sweeps", "applications", "tasks", "store", "values", "models"} <= {
        page.stem for page in PAGES_WITH_CODE
    }


@each_page
def test_every_block_is_of_a_kind_that_is_run_or_checked(page):
    for block in blocks(read(page)):
        assert block.language in LANGUAGES, f"line {block.line}: {block.language}"
        for words in commands(block):
            assert words[0] in ("make", "collabsim", "pip"), f"line {block.line}: {words}"


@each_page
def test_every_fence_is_read_as_a_block(page):
    assert read(page).count("\n```") == 2 * len(blocks(read(page)))


@each_page
def test_the_make_targets_of_a_page_exist(page):
    targets = re.findall(r"^([a-z]+):", read(ROOT / "Makefile"), re.MULTILINE)
    in_blocks = [words[1] for block in blocks(read(page)) for words in commands(block) if words[0] == "make"]
    in_lines = re.findall(r"`make ([a-z]+)", read(page))
    assert {*in_blocks, *in_lines} <= set(targets)


@each_page
def test_the_extras_that_a_page_names_exist(page):
    extras = PYPROJECT["project"]["optional-dependencies"]
    named = re.findall(r"(?:collabsim|\.whl)\[([a-z,-]+)\]", read(page))
    assert {extra for names in named for extra in names.split(",")} <= set(extras)


def test_the_table_of_extras_is_complete():
    table = read(ROOT / "docs" / "models.md").partition("## Extras")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE)) == set(
        PYPROJECT["project"]["optional-dependencies"]
    )


def test_the_wheel_that_the_readme_installs_is_the_one_that_is_built():
    lines = [words for block in of(read(ROOT / "README.md"), "bash") for words in commands(block) if words[0] == "pip"]
    assert [words[1] for words in lines] == ["install", "wheel", "install"]
    wheel = lines[-1][-1].rpartition("[")[0]
    assert wheel == f"dist/collabsim-{PYPROJECT['project']['version']}-py3-none-any.whl"
    assert Requirement(f"collabsim @ {lines[0][-1]}").url == "git+file:///PATH/TO/collabsim"


def test_the_protocol_of_the_guide_is_the_one_in_the_examples():
    (block,) = [block for block in of(read(ROOT / "docs" / "protocols.md"), "python") if block.file == "my_protocol.py"]
    assert block.text == read(ROOT / "examples" / "my_protocol.py")


def test_the_entry_point_of_the_guide_gives_the_protocol_its_name(workspace):
    page = read(ROOT / "docs" / "protocols.md")
    (table,) = of(page, "toml")
    points = tomllib.loads(table.text)["project"]["entry-points"]
    package = workspace / "readers_package-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: readers-package\nVersion: 1.0\n")
    lines = [f"[{group}]\n{name} = {value}\n" for group, names in points.items() for name, value in names.items()]
    (package / "entry_points.txt").write_text("".join(lines))
    shutil.copy(workspace / "examples" / "my_protocol.py", workspace)
    (config,) = [block for block in of(page, "yaml") if block.file == "self_check.yaml"]
    (workspace / "self_check.yaml").write_text(config.text)

    def in_a_process(*arguments: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(workspace)}
        command = [sys.executable, "-m", "collabsim", *arguments]
        done = subprocess.run(command, cwd=workspace, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "self_check" in in_a_process("protocols")
    by_name = ["sweep", "self_check.yaml", "--set", "protocol.name=self_check", "--dry-run", "--json"]
    assert json.loads(in_a_process(*by_name))["coalition_runs"] == 160
