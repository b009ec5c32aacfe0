"""The README is true and short: its snippets run in order as processes, and its picture is what they draw."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pages import ROOT, Block, blocks, commands, of, read

README = read(ROOT / "README.md")
COMMAND = Path(sys.executable).with_name("collabsim")
LONGEST = 150


def run(block: Block, names: dict, folder: Path) -> None:
    """Do what a reader does with a block."""
    if block.file:
        (folder / block.file).write_text(block.text, encoding="utf-8")
    if block.language == "python":
        exec(compile(block.text, f"README.md, block at line {block.line}", "exec"), names)
    for words in commands(block):
        if words[0] == "collabsim":
            done = subprocess.run([str(COMMAND), *words[1:]], cwd=folder, capture_output=True, text=True)
            assert done.returncode == 0, f"{words}: exit code {done.returncode}\n{done.stderr}"


@pytest.mark.slow
def test_the_snippets_run_in_order_and_the_picture_is_what_they_draw(workspace):
    names: dict = {"__name__": "readme"}
    for block in blocks(README):
        run(block, names, workspace)
    assert 0 <= names["result"].values["shapley"]["m3"]["value"] <= 1
    drawn = read(workspace / "quickstart.svg")
    assert shown(drawn) == shown(read(ROOT / "benchmarks" / "results" / "quickstart.svg"))


def shown(svg: str) -> list[str]:
    """The texts in a picture, without how long the sweep took."""
    texts = [re.sub(r"[\d.,]+&#160;s$", "", text) for text in re.findall(r">([^<>]+)</text>", svg)]
    assert len(texts) > 20
    return texts


def test_the_protocol_of_the_readme_passes_the_conformance_suite(workspace):
    from collabsim.testing import check_protocol

    names: dict = {"__name__": "readme"}
    (block,) = [block for block in of(README, "python") if block.file == "my_vote.py"]
    run(block, names, workspace)
    check_protocol(names["my_vote"])


def test_every_config_names_its_file():
    assert of(README, "yaml")
    assert [block.line for block in of(README, "yaml") if not block.file] == []


def test_the_two_commands_are_make_demo_and_make_test():
    assert [words[1] for block in of(README, "bash") for words in commands(block) if words[0] == "make"] == [
        "demo",
        "test",
    ]


def test_the_readme_is_short():
    assert len(README.splitlines()) <= LONGEST


def test_the_install_lines_name_what_the_setup_needs():
    assert {"make", "gcc", "python3-venv", "python3-dev"} <= set(
        re.search(r"apt-get install ([^`]+)`", README)[1].split()
    )


@pytest.mark.slow
def test_the_install_lines_put_the_package_into_a_project(tmp_path):
    """As written, but for the checkout's own path and for dependencies, which are there already."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    shutil.copytree(
        ROOT, tmp_path / "checkout", ignore=shutil.ignore_patterns(".*", "runs", "site", "build", "*.egg-info")
    )
    lines = [words for block in of(README, "bash") for words in commands(block) if words[0] == "pip"]
    assert len(lines) == 3
    for number, words in enumerate(lines):
        target = tmp_path / f"project-{number}"
        given = [word.replace("/PATH/TO/collabsim", str(ROOT)) for word in words[1:] if word != "--no-deps"]
        flags = ["--no-deps", "--no-build-isolation", *(["--target", str(target)] if words[1] == "install" else [])]
        command = [sys.executable, "-m", "pip", given[0], "--quiet", "--disable-pip-version-check", *flags, *given[1:]]
        done = subprocess.run(command, cwd=tmp_path / "checkout", capture_output=True, text=True)
        assert done.returncode == 0, f"{words}\n{done.stderr}"
        if words[1] == "install":
            assert (target / "collabsim" / "trainers" / "__init__.py").exists()
